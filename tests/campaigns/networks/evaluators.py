"""Who computes the results of a node while a network grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import NodeProto, helper
from onnx.reference import ReferenceEvaluator

from tests.campaigns.networks.nodes import info_of, opsets, traced
from tests.campaigns.networks.values import Run, Unstable, Value, is_float

__all__ = ["evaluator", "session_options"]

Array = NDArray[Any]

_BY_ONNXRUNTIME = frozenset({"MaxRoiPool", "SimplifiedLayerNormalization"})
"""Operators that onnx's reference (1.23) does not implement."""


def evaluator(nodes: Sequence[NodeProto], operands: Sequence[Value | None], opset: int) -> Run:
    """onnx's reference implementation in float64; onnxruntime in the model's types where onnx has
    none, which is right but for roundings."""
    present = list({v.name: v for v in operands if v is not None}.values())
    if any(n.domain == "com.microsoft" or n.op_type in _BY_ONNXRUNTIME for n in nodes):
        return _by_onnxruntime(nodes, present, opset)
    inputs = [
        helper.make_tensor_value_info(
            v.name, helper.np_dtype_to_tensor_dtype(v.exact.dtype), v.shape
        )
        for v in present
    ]
    names = [name for name in nodes[-1].output if name]
    wide = [traced(node, operands) for node in nodes]
    outputs = [helper.make_empty_tensor_value_info(name) for name in names]
    graph = helper.make_graph(wide, "node", inputs, outputs)
    versions = {one.domain: one.version for one in opsets(nodes, opset)}
    reference = ReferenceEvaluator(graph, opsets=versions)

    def run(feeds: Mapping[str, Array]) -> list[Any]:
        try:
            return list(reference.run(None, dict(feeds)))
        except (TypeError, ValueError, RuntimeError, IndexError) as error:  # faults of its own
            raise Unstable(f"onnx's reference fails: {str(error)[:200]}") from None

    return run


def session_options() -> onnxruntime.SessionOptions:
    """One thread, and no passes.

    Its passes (1.31) let MaxPool ignore the zeros of an earlier Pad, and round the scale of a
    float64 product to float32.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options


def _by_onnxruntime(nodes: Sequence[NodeProto], present: Sequence[Value], opset: int) -> Run:
    outputs = [helper.make_empty_tensor_value_info(name) for name in nodes[-1].output if name]
    graph = helper.make_graph(list(nodes), "node", [info_of(v) for v in present], outputs)
    model = helper.make_model(graph, opset_imports=opsets(nodes, opset))
    model.ir_version = 10
    kinds = {v.name: v.dtype for v in present}
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), session_options(), providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # its own exceptions have no common base class
        raise Unstable(f"onnxruntime refuses: {str(error)[:300]}") from None

    def run(feeds: Mapping[str, Array]) -> list[Any]:
        given = {n: a.astype(kinds[n]) if is_float(kinds[n]) else a for n, a in feeds.items()}
        try:
            return list(session.run(None, given))
        except Exception as error:
            raise Unstable(f"onnxruntime fails: {str(error)[:300]}") from None

    return run
