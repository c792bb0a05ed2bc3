"""Lowering of a bound state to a loop program."""

from __future__ import annotations

__all__: list[str] = []
