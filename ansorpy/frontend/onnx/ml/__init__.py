"""Importers of the numeric operators of ``ai.onnx.ml``: classical models and their features."""

from __future__ import annotations

from collections.abc import Mapping

from ansorpy.frontend.onnx.context import Translate
from ansorpy.frontend.onnx.ml import features, linear, support_vectors, trees
from ansorpy.frontend.onnx.ml.shared import DOMAIN

__all__ = ["OPERATORS"]

_IN_DOMAIN: Mapping[str, Translate] = {
    **features.OPERATORS,
    **linear.OPERATORS,
    **support_vectors.OPERATORS,
    **trees.OPERATORS,
}

OPERATORS = {f"{DOMAIN}.{name}": translate for name, translate in _IN_DOMAIN.items()}
"""By their names in the table of all operators."""
