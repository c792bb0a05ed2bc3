"""Candidates run and timed, one at a time."""

from __future__ import annotations

__all__: list[str] = []
