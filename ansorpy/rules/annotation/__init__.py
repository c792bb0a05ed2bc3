"""Annotation rules, one per file: the decisions left open once a sketch is placed."""
