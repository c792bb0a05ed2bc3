"""Static analyses of programs and definitions: accesses, bounds, conditions, operation counts."""

from __future__ import annotations

__all__: list[str] = []
