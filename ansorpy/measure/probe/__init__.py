"""Measure the rates of this machine: the parameters of the closed-form cost model."""
