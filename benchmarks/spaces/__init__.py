"""Recorded search spaces, complete grids of measured programs: listed, recorded, ranked."""
