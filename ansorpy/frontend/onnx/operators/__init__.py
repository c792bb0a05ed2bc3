"""Importers of ONNX operators, one family a file."""

from __future__ import annotations

__all__: list[str] = []
