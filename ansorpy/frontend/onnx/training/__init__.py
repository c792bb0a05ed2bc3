"""Importers of what training computes: losses, and the steps of optimisers."""

from __future__ import annotations

__all__: list[str] = []
