"""Run, check and time candidates, one at a time."""
