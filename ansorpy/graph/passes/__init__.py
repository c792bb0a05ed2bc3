"""Graph-to-graph passes, one per file; `graph/optimize.py` sets their order."""
