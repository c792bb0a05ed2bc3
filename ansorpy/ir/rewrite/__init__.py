"""Rewriting and simplification of expressions and statements."""

from __future__ import annotations

__all__: list[str] = []
