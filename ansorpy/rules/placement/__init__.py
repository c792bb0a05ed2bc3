"""Placement rules, one file each: what a structure fixes for all its rows."""
