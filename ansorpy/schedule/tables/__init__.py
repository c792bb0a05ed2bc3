"""Evaluate all candidates of a placed sketch at once: sizes as columns, loop nests as tables."""
