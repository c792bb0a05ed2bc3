"""Importers of ``com.microsoft``: what onnxruntime's exporters, optimiser and quantiser write."""

from __future__ import annotations

from ansorpy.frontend.onnx.microsoft import (
    activations,
    attention,
    matrices,
    norms,
    quantized,
    recurrent,
    weights,
)
from ansorpy.frontend.onnx.microsoft.domain import Importer

__all__ = ["OPERATORS"]

OPERATORS: dict[str, Importer] = {
    **activations.OPERATORS,
    **attention.OPERATORS,
    **matrices.OPERATORS,
    **norms.OPERATORS,
    **quantized.OPERATORS,
    **recurrent.OPERATORS,
    **weights.OPERATORS,
}
