"""Importers of operators with bodies, and of those on sequences and optional values."""
