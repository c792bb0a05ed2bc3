"""Supervised worker processes, and the locks they take."""

from __future__ import annotations

__all__: list[str] = []
