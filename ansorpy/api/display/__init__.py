"""Displays of a running search: live on a terminal or in a notebook, as lines, as JSON."""
