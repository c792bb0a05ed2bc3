"""Recorded schedules as rows of the spaces that rules derive today."""

from __future__ import annotations

__all__: list[str] = []
