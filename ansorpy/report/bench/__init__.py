"""Timing engines fairly: one process each, one at a time, in alternating bursts."""
