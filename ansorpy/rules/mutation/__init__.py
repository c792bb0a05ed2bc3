"""Mutations, one per file: how a population table changes between generations."""
