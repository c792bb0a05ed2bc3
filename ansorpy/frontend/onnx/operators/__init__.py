"""Importers of ONNX operators, one family per file."""

from __future__ import annotations

__all__: list[str] = []
