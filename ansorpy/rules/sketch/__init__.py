"""Sketch rules, one per file: when a rule applies to a stage, and how it changes the state."""
