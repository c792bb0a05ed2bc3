"""Bound inference: loop extents, and the boxes of tensors that loops need."""

from __future__ import annotations

__all__: list[str] = []
