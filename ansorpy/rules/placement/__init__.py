"""Placement rules, one per file: they draw what a placed sketch fixes for all its rows."""
