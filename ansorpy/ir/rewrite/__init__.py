"""Rewriting of expressions and statements, and their simplification."""

from __future__ import annotations

__all__: list[str] = []
