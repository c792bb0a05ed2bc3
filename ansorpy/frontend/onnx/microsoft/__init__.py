"""Importers of ``com.microsoft``: what onnxruntime's exporters, optimiser and quantiser write."""

from __future__ import annotations

from ansorpy.frontend.onnx.microsoft import activations, attention, norms, quantized, weights
from ansorpy.frontend.onnx.microsoft.domain import Importer

__all__ = ["OPERATORS"]

OPERATORS: dict[str, Importer] = {
    **activations.OPERATORS,
    **attention.OPERATORS,
    **norms.OPERATORS,
    **quantized.OPERATORS,
    **weights.OPERATORS,
}
