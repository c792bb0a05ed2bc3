"""The thread team of parallel loops, as compiled code."""

from __future__ import annotations

__all__: list[str] = []
