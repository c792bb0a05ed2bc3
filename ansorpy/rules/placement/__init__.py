"""Placement rules, one per file, which draw the choices that a structure fixes for all its rows."""
