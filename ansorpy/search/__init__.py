"""Searching the programs of one task: strategies, selectors, and the loop that drives them."""
