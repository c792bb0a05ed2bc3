"""The ONNX importer; :func:`load` returns a model's network graph."""

from __future__ import annotations

from ansorpy.frontend.onnx.importer import load

__all__ = ["load"]
