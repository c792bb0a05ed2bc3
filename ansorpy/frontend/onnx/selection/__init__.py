"""Importers of operators that sort, and of those whose results' sizes depend on data."""

from __future__ import annotations

__all__: list[str] = []
