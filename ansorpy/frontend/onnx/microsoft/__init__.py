"""Importers of ``com.microsoft``: what onnxruntime's exporters, optimiser and quantiser write."""

from __future__ import annotations

from collections.abc import Mapping

from ansorpy.frontend.onnx.context import Translate
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

__all__ = ["OPERATORS"]

_IN_DOMAIN: Mapping[str, Translate] = {
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

OPERATORS: Mapping[str, Translate] = {
    **{f"com.microsoft.{name}": translate for name, translate in _IN_DOMAIN.items()},
    "SimplifiedLayerNormalization": norms.simplified_layer_normalization,
}
"""By their names in the table of all operators.  onnxruntime writes the last one without domain."""
