"""Operators beside other libraries: ``python -m benchmarks.ops --help``."""
