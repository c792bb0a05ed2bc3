"""Recorded search spaces: complete grids of measured programs."""
