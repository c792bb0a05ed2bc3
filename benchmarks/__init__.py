"""Benchmarks: speed compared to other engines, measured in the same way as by ``ansorpy bench``."""
