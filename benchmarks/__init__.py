"""Benchmarks: speed ratios to other engines, measured in the same way as by ``ansorpy bench``."""
