"""Tests of the race."""
