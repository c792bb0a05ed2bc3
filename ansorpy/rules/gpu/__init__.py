"""Shared parts of the rules for GPU blocks: tiles of blocks, warps and rows."""

from __future__ import annotations

__all__: list[str] = []
