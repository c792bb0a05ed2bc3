"""Importers of models as network graphs, with one folder per format."""

from __future__ import annotations

__all__: list[str] = []
