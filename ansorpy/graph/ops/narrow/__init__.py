"""Narrow element types: packed bytes, and conversions of codes in registers."""
