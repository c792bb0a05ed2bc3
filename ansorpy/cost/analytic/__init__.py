"""The analytic cost model: a program's time from its loops and the machine alone."""
