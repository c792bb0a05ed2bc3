"""Graph to graph passes, one per file; `graph/optimize.py` has their order."""

from __future__ import annotations

__all__: list[str] = []
