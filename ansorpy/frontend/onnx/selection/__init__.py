"""Importers of operators that sort, and of those whose results' sizes depend on data."""
