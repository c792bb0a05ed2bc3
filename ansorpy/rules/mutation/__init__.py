"""Mutations, one per file, which change population tables between generations."""
