"""Build candidates in worker processes."""

from __future__ import annotations

__all__: list[str] = []
