"""Reuse of recorded schedules as rows of the spaces that the rules derive now."""
