"""Damaged and forged inputs: models, databases, libraries, arrays and command lines."""
