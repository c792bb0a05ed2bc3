"""Evaluate all candidates of a placed sketch at once: sizes as columns, loop nests as tables."""

from __future__ import annotations

__all__: list[str] = []
