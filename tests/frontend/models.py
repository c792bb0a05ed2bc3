"""Small ONNX models for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

__all__ = ["graph_model", "node", "operator_model"]

Array = NDArray[np.generic]
node = helper.make_node


def graph_model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Sequence[int | str | None]],
    outputs: Sequence[str],
    constants: Mapping[str, Array] | None = None,
    opset: int = 17,
    types: Mapping[str, int] | None = None,
    domains: Sequence[str] = (),
) -> ModelProto:
    """A model whose inputs and outputs are float32 unless *types* names another element type.

    The outputs' shapes are left to shape inference.
    """
    kinds = types or {}

    def info(name: str, shape: Sequence[int | str | None] | None) -> ValueInfoProto:
        return helper.make_tensor_value_info(name, kinds.get(name, TensorProto.FLOAT), shape)

    graph = helper.make_graph(
        list(nodes),
        "test",
        [info(n, s) for n, s in inputs.items()],
        [info(n, None) for n in outputs],
        [numpy_helper.from_array(a, n) for n, a in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 8
    return onnx.shape_inference.infer_shapes(model)


def operator_model(
    op_type: str,
    shapes: Sequence[Sequence[int]],
    constants: Sequence[Array | None] = (),
    opset: int = 17,
    outputs: int = 1,
    types: Mapping[str, int] | None = None,
    **attributes: Any,
) -> ModelProto:
    """One operator on inputs ``x0, x1, ..``, then constants (None: an operand left out).

    Inputs and the outputs ``y0, y1, ..`` are float32 unless *types* names another element type.
    """
    inputs = {f"x{i}": shape for i, shape in enumerate(shapes)}
    held = {f"c{i}": a for i, a in enumerate(constants) if a is not None}
    operands = [*inputs, *("" if a is None else f"c{i}" for i, a in enumerate(constants))]
    names = [f"y{i}" for i in range(outputs)]
    one = node(op_type, operands, names, **attributes)
    return graph_model([one], inputs, names, held, opset, types)
