"""Rates of this machine, measured once: the parameters of the closed-form cost model."""
