"""Emit loop programs as LLVM IR."""

from __future__ import annotations

__all__: list[str] = []
