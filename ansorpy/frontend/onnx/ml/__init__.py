"""Importers of the numeric operators of ``ai.onnx.ml``: classical models and their features."""

from __future__ import annotations

__all__: list[str] = []
