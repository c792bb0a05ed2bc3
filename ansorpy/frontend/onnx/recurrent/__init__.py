"""Importers of recurrent networks."""
