"""Operators on images: samples at places between pixels, and regions of interest."""

from __future__ import annotations

__all__: list[str] = []
