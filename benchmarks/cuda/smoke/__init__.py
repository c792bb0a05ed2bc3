"""Smoke tests: every call of the GPU's driver and every way to run there, on tiny problems."""
