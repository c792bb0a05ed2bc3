"""Importers of recurrent networks."""

from __future__ import annotations

__all__: list[str] = []
