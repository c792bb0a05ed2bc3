"""``python -m benchmarks.search``: strategies compared on recorded spaces."""
