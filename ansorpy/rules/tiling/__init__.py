"""Levels of tiles, their loops, and which sizes are drawn."""

from __future__ import annotations

__all__: list[str] = []
