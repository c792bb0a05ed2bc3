"""Reuse of recorded schedules as rows of the spaces that the rules derive now."""

from __future__ import annotations

__all__: list[str] = []
