"""Annotation rules, one per file, which open the decisions of a placed sketch."""
