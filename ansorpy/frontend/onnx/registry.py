"""The table of ONNX operators, from name to importer, collected from the family modules.

Operators of other domains than onnx's own have it in front: ``com.microsoft.FusedMatMul``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import NodeProto

from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.frontend.onnx.ml import features, linear, trees
from ansorpy.frontend.onnx.operators import (
    activation,
    attention,
    constant,
    conv,
    conv_transpose,
    einsum,
    elementwise,
    functions,
    gather,
    logic,
    matmul,
    movement,
    normalization,
    places,
    pool,
    reduce,
    resize,
    sampling,
    scatter,
    signal,
)
from ansorpy.frontend.onnx.quantized import products as quantized
from ansorpy.frontend.onnx.quantized import quantize
from ansorpy.frontend.onnx.recurrent import gru, lstm
from ansorpy.frontend.onnx.selection import boxes, chosen, sorts
from ansorpy.frontend.onnx.training import losses, optimisers

__all__ = ["ON_SHAPES", "OPERATORS", "STANDARD", "operator_of"]

STANDARD = ("", "ai.onnx")
"""The names of onnx's own domain."""


def operator_of(node: NodeProto) -> str:
    """The name of *node*'s operator in the table."""
    return node.op_type if node.domain in STANDARD else f"{node.domain}.{node.op_type}"


OPERATORS: Mapping[str, Callable[[NodeContext], str | tuple[str, ...]]] = {
    **activation.OPERATORS,
    **attention.OPERATORS,
    **constant.OPERATORS,
    **boxes.OPERATORS,
    **chosen.OPERATORS,
    **conv.OPERATORS,
    **conv_transpose.OPERATORS,
    **einsum.OPERATORS,
    **elementwise.OPERATORS,
    **features.OPERATORS,
    **functions.OPERATORS,
    **gather.OPERATORS,
    **gru.OPERATORS,
    **linear.OPERATORS,
    **logic.OPERATORS,
    **losses.OPERATORS,
    **lstm.OPERATORS,
    **matmul.OPERATORS,
    **movement.OPERATORS,
    **normalization.OPERATORS,
    **optimisers.OPERATORS,
    **places.OPERATORS,
    **pool.OPERATORS,
    **quantize.OPERATORS,
    **quantized.OPERATORS,
    **reduce.OPERATORS,
    **resize.OPERATORS,
    **sampling.OPERATORS,
    **scatter.OPERATORS,
    **sorts.OPERATORS,
    **signal.OPERATORS,
    **trees.OPERATORS,
}

ON_SHAPES = frozenset({
    *constant.OPERATORS, *elementwise.OPERATORS, *functions.OPERATORS, *gather.OPERATORS,
    *logic.OPERATORS, *movement.OPERATORS, *places.OPERATORS, *quantize.OPERATORS,
    *reduce.OPERATORS, *scatter.OPERATORS, *sorts.OPERATORS, *signal.OPERATORS,
})  # fmt: skip
"""Operators with which exporters compute shapes, on integers and on tensors without elements, which
no kernel supports.  For other operators, onnx's reference implementation ignores some attributes
(the clip of an LSTM) and the semantics of older operator sets (softmax)."""
