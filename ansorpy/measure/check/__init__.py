"""Check that a candidate's output is correct."""
