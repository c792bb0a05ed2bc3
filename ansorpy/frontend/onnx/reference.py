"""Nodes on constants, computed by onnx's reference implementation, and what that lacks.

Few networks need it, so its 200 modules are loaded with the first such node.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import ModelProto, NodeProto, helper

from ansorpy.frontend.onnx.reader import opset_of
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ir import Array

if TYPE_CHECKING:
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

__all__ = ["evaluated", "operators_of"]


def _flattening(operator: Any) -> type[OpRun]:
    """*operator* as before opset 13, over all axes from ``axis`` on, which is 1 by default.

    onnx implements only the newer form, over one axis.
    """

    def run(self: Any, x: Array, **_: object) -> tuple[Array]:
        axis = next((a.i for a in self.onnx_node.attribute if a.name == "axis"), 1)
        self.axis = 1
        [y] = operator._run(self, x.reshape(prod(x.shape[:axis]), -1))
        return (y.reshape(x.shape),)

    return type(operator.__name__, (operator,), {"op_domain": "", "_run": run})


@cache
def _before_13() -> list[type[OpRun]]:
    from onnx.reference.ops.op_hardmax import Hardmax
    from onnx.reference.ops.op_log_softmax import LogSoftmax
    from onnx.reference.ops.op_softmax import Softmax

    return [_flattening(operator) for operator in (Softmax, LogSoftmax, Hardmax)]


def operators_of(opset: int) -> list[type[OpRun]]:
    """The operators that onnx's evaluator lacks in the form they have in *opset*."""
    return _before_13() if opset < 13 else []


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
    from onnx.reference import ReferenceEvaluator

    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in feeds.items()
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output]
    opsets = {o.domain: o.version for o in model.opset_import} | {"": opset_of(model)}
    graph = helper.make_graph([node], "node", inputs, outputs)
    return ReferenceEvaluator(graph, opsets=opsets, new_ops=operators_of(opsets[""]))
