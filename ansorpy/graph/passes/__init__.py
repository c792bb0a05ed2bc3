"""Graph-to-graph passes, one per file; `graph/optimize.py` sets their order."""

from __future__ import annotations

__all__: list[str] = []
