"""Nodes on constants, computed by onnx's reference implementation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto, helper
from onnx.reference import ReferenceEvaluator

from ansorpy.frontend.onnx.context import Unsupported
from ansorpy.frontend.onnx.reader import opset_of
from ansorpy.graph.ir import Array

__all__ = ["evaluated"]


def evaluated(node: NodeProto, feeds: Mapping[str, Array], model: ModelProto) -> list[Array]:
    """The results of *node* for constants *feeds*, in the operator sets of *model*.

    Raises:
        Unsupported: onnx cannot compute them.
    """
    try:
        return [
            np.asarray(result) for result in _evaluator(node, feeds, model).run(None, dict(feeds))
        ]
    except Exception as error:  # the reference implementation may raise anything
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise Unsupported("constant operands", f"onnx cannot evaluate it: {reason[0]}") from None


def _evaluator(
    node: NodeProto, feeds: Mapping[str, Array], model: ModelProto
) -> ReferenceEvaluator:
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in feeds.items()
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output]
    opsets = {o.domain: o.version for o in model.opset_import} | {"": opset_of(model)}
    return ReferenceEvaluator(helper.make_graph([node], "node", inputs, outputs), opsets=opsets)
