"""Importers of models as network graphs, with one folder per format."""
