"""Race the parts of the search against each other: ``python -m benchmarks.race --help``."""
