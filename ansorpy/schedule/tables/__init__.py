"""Evaluation of all candidates of a structure at once: sizes as columns, loop nests as tables."""

from __future__ import annotations

__all__: list[str] = []
