"""Operator families as compute definitions; `table.py` says which function defines what."""

from __future__ import annotations

__all__: list[str] = []
