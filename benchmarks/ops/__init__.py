"""Compare operators with other libraries: ``python -m benchmarks.ops --help``."""
