"""Sketch rules, one per file: when each applies to a stage, and how it changes the state."""
