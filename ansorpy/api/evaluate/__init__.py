"""Evaluation of a compiled network: open it from a library or from records, verify it, time it."""
