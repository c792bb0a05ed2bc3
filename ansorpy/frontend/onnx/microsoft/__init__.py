"""Importers of ``com.microsoft``: what onnxruntime's exporters, optimiser and quantiser write."""

from __future__ import annotations

from ansorpy.frontend.onnx.microsoft import (
    activations,
    attention,
    experts,
    images,
    matrices,
    movement,
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
    **experts.OPERATORS,
    **images.OPERATORS,
    **matrices.OPERATORS,
    **movement.OPERATORS,
    **norms.OPERATORS,
    **quantized.OPERATORS,
    **recurrent.OPERATORS,
    **weights.OPERATORS,
}
