"""Emit loop programs as CUDA C."""

from __future__ import annotations

__all__: list[str] = []
