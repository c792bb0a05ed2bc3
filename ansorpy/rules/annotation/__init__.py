"""Annotation rules, one file each: what is left open once a sketch is placed."""
