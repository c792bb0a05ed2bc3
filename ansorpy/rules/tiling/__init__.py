"""Levels of tiles, their loops, and the sizes that are drawn."""

from __future__ import annotations

__all__: list[str] = []
