"""Importers of operators on images: resizing, samples at computed places, regions."""

from __future__ import annotations

__all__: list[str] = []
