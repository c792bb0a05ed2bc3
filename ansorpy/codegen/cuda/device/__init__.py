"""Access to a GPU, and the compiler that needs none."""

from __future__ import annotations

__all__: list[str] = []
