"""Importers of quantized operators."""

from __future__ import annotations

__all__: list[str] = []
