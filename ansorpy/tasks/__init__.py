"""Tune many tasks with one budget."""
