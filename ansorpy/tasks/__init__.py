"""Tuning many tasks with one budget."""
