"""Rewriting of loop programs before they become CUDA C."""

from __future__ import annotations

__all__: list[str] = []
