"""Narrow element types: packed bytes, and conversions of codes in registers."""

from __future__ import annotations

__all__: list[str] = []
