"""Placement rules, one per file: the choices that a structure fixes for all its rows."""
