"""Access to a GPU, and compilation with NVRTC, which needs no GPU."""

from __future__ import annotations

__all__: list[str] = []
