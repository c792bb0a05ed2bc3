"""ATen operators as ONNX nodes, one file per family; each has a table ``OPERATORS``."""

from __future__ import annotations

__all__: list[str] = []
