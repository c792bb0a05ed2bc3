"""Ansor's evaluation (OSDI'20 section 7), again: ``python -m benchmarks.paper --help``."""
