"""Nodes on constants, computed by onnx's reference implementation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto, helper
from onnx.reference import ReferenceEvaluator

from ansorpy.frontend.onnx.context import Unsupported
from ansorpy.frontend.onnx.quantized.narrow import NarrowArray
from ansorpy.frontend.onnx.reader import opset_of

__all__ = ["reference_values"]


def reference_values(
    node: NodeProto, feeds: Mapping[str, NarrowArray], model: ModelProto
) -> list[NarrowArray]:
    """The values of *node* for *feeds*, in the operator sets of *model*.

    Raises:
        Unsupported: The reference implementation cannot compute them.
    """
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in feeds.items()
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output]
    opsets = {o.domain: o.version for o in model.opset_import} | {"": opset_of(model)}
    try:
        graph = helper.make_graph([node], "node", inputs, outputs)
        made = ReferenceEvaluator(graph, opsets=opsets).run(None, dict(feeds))
        return [np.asarray(result) for result in made]
    except Exception as error:  # the reference implementation may raise anything
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise Unsupported("constant operands", f"onnx cannot evaluate it: {reason[0]}") from None
