"""Benchmarks: ratios to other engines, measured as ``ansorpy bench`` measures them."""
