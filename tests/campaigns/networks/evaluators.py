"""Who computes the results of a node while a network grows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnxruntime
from numpy.typing import NDArray
from onnx import NodeProto, helper
from onnx.reference import ReferenceEvaluator

from tests.campaigns.networks.nodes import all_of, info_of, misread, noisy, opsets, traced
from tests.campaigns.networks.values import Run, Unstable, Value, is_float

__all__ = ["FAULTS", "evaluator", "session_options"]

Array = NDArray[Any]

_BY_ONNXRUNTIME = frozenset({
    "GlobalLpPool", "MaxRoiPool", "MeanVarianceNormalization", "Multinomial",
})  # fmt: skip
"""Operators that onnx's reference (1.23) does not implement, or in float32 only."""


Once = Callable[[Mapping[str, Array]], Sequence[Any]]
FAULTS = (TypeError, ValueError, RuntimeError, IndexError, ZeroDivisionError, AttributeError)
"""What onnx's reference raises where it is at fault itself."""


def evaluator(
    nodes: Sequence[NodeProto], operands: Sequence[Value | None], opset: int, off: float
) -> Run:
    """onnx's reference implementation in float64; onnxruntime in the model's types where onnx has
    none, which is right but for roundings.

    In each run but the first, floats in the bodies of *nodes* are *off* by that fraction of them.
    """
    make = _by_onnxruntime if any(map(_is_elsewhere, all_of(nodes))) else _by_reference
    has_bodies = len(list(all_of(nodes))) > len(nodes)
    runs = [make(nodes, operands, opset)]

    def run(feeds: Mapping[str, Array], number: int) -> Sequence[Any]:
        if has_bodies and number == len(runs):
            runs.append(make([noisy(node, off, number) for node in nodes], operands, opset))
        return runs[number if has_bodies else 0](feeds)

    return run


def _by_reference(nodes: Sequence[NodeProto], operands: Sequence[Value | None], opset: int) -> Once:
    inputs = [
        helper.make_tensor_value_info(
            v.name, helper.np_dtype_to_tensor_dtype(v.exact.dtype), v.shape
        )
        for v in {v.name: v for v in operands if v is not None}.values()
    ]
    wide = [traced(node, operands) for node in nodes]
    outputs = [helper.make_empty_tensor_value_info(name) for name in nodes[-1].output if name]
    graph = helper.make_graph(wide, "node", inputs, outputs)
    versions = {one.domain: one.version for one in opsets(nodes, opset)}
    try:
        reference = ReferenceEvaluator(graph, opsets=versions)
    except (RuntimeError, NotImplementedError) as error:
        raise Unstable(f"onnx's reference does not know it: {str(error)[:80]}") from None

    def once(feeds: Mapping[str, Array]) -> list[Any]:
        try:
            return list(reference.run(None, dict(feeds)))
        except FAULTS as error:
            raise Unstable(f"onnx's reference fails: {str(error)[:200]}") from None

    return once


def _is_elsewhere(node: NodeProto) -> bool:
    known = node.domain != "com.microsoft" and node.op_type not in _BY_ONNXRUNTIME
    return not known or misread(node)


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


def _by_onnxruntime(
    nodes: Sequence[NodeProto], operands: Sequence[Value | None], opset: int
) -> Once:
    present = list({v.name: v for v in operands if v is not None}.values())
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

    def once(feeds: Mapping[str, Array]) -> list[Any]:
        given = {n: a.astype(kinds[n]) if is_float(kinds[n]) else a for n, a in feeds.items()}
        try:
            return list(session.run(None, given))
        except Exception as error:
            raise Unstable(f"onnxruntime fails: {str(error)[:300]}") from None

    return once
