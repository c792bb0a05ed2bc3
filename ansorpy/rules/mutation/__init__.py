"""Mutations, one file each: how a population table changes between generations."""
