"""Lowering of a resolved state to a loop program."""

from __future__ import annotations

__all__: list[str] = []
