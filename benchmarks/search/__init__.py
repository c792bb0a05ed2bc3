"""``python -m benchmarks.search``: compare search strategies on recorded spaces."""
