"""Sketch rules, one file each: when a rule applies to a stage, and what it makes of the state."""
