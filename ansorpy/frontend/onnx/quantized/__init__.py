"""Importers of quantized operators."""
