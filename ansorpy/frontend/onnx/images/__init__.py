"""Importers of operators on images: resizing, samples at computed places, regions."""
