"""Check that a candidate's output is correct."""

from __future__ import annotations

__all__: list[str] = []
