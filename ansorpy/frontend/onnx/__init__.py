"""The ONNX importer; :func:`load` returns a model's network graph."""

from __future__ import annotations

from ansorpy.frontend.onnx.loading import Imported, load, load_with_ranges, runnable_shapes

__all__ = ["Imported", "load", "load_with_ranges", "runnable_shapes"]
