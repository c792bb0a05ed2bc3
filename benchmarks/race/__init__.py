"""Races between the parts of the search."""
