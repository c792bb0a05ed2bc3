"""Model formats to network graphs: one folder a format."""

from __future__ import annotations

__all__: list[str] = []
