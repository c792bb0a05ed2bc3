"""Importers of what training computes: losses, and the steps of optimisers."""
