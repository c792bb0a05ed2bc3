"""Programs and definitions as text and as JSON."""

from __future__ import annotations

__all__: list[str] = []
