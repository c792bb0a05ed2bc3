"""Imports ONNX models as network graphs: :func:`load`."""

from __future__ import annotations

from ansorpy.frontend.onnx.importer import load

__all__ = ["load"]
