"""The analytic cost model of CPUs."""
