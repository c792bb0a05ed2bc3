"""The closed-form cost model: a program's time from its loops and the machine alone."""
