"""Supervised worker processes, and machine-wide locks on the devices they use."""
