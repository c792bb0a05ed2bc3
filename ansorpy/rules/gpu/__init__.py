"""What rules for GPU blocks share: tiles of blocks, warps and rows."""

from __future__ import annotations

__all__: list[str] = []
