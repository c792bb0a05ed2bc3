"""Benchmarks; docs/results/index.md says which command measures what."""
