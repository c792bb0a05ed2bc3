"""Measure the rates of this machine: the parameters of the analytic cost model."""
