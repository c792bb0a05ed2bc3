"""Levels of tiles, their loops, and the sizes that are drawn."""
