"""Weights stored as quarter-precision floats or 4-bit integers, against onnx's reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from tests.frontend.models import node
from tests.graph.executor import Array, compiled, random_feeds, run_network

FLOATS = ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"]
INTEGERS = ["INT4", "UINT4"]
OPSET = 21
SHAPE = (3, 10)


def stored(kind: str, shape: Sequence[int], rng: np.random.Generator, name: str) -> TensorProto:
    """Random values of a narrow type, its extremes among them."""
    code = getattr(TensorProto, kind)
    values = rng.standard_normal(shape) * 3
    values.flat[:2] = (-400, 400) if kind in FLOATS else (-8, 15)
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code))
    low, high = {"INT4": (-8, 7), "UINT4": (0, 15)}.get(kind, (-200.0, 200.0))
    return numpy_helper.from_array(np.clip(np.round(values), low, high).astype(dtype), name)


def model_of(
    nodes: Sequence[NodeProto], held: Sequence[TensorProto], shape: Sequence[int] = SHAPE
) -> ModelProto:
    """``y = x + w``, where *nodes* make ``w`` of *held*."""
    graph = helper.make_graph(
        [*nodes, node("Add", ["x", "w"], ["y"])],
        "narrow",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        list(held),
    )
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def held(name: str, array: Array) -> TensorProto:
    return numpy_helper.from_array(array, name)


def assert_same_as_reference(model: ModelProto, rng: np.random.Generator) -> None:
    network = compiled(model)
    assert {call.key for call in network.calls} and len(load(model).nodes) == 1, "all is folded"
    feeds = random_feeds(network, rng)
    [got] = run_network(network, feeds)
    [result] = ReferenceEvaluator(model).run(None, feeds)
    want = np.asarray(result)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6 * np.abs(want).max())


@pytest.mark.parametrize("kind", [*FLOATS, *INTEGERS])
def test_they_are_cast_to_floats(kind: str, rng: np.random.Generator) -> None:
    nodes = [node("Cast", ["q"], ["w"], to=TensorProto.FLOAT)]
    assert_same_as_reference(model_of(nodes, [stored(kind, SHAPE, rng, "q")]), rng)


@pytest.mark.parametrize("kind", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize(
    ("scales", "given"),
    [((), {}), ((10,), {"axis": 1}), ((3,), {"axis": 0}), ((3, 2), {"axis": 1, "block_size": 5})],
)
def test_they_are_dequantised(
    kind: str, scales: tuple[int, ...], given: dict[str, Any], rng: np.random.Generator
) -> None:
    scale = np.asarray(rng.uniform(0.1, 2.0, scales), np.float32)
    tensors = [stored(kind, SHAPE, rng, "q"), held("s", scale)]
    operands = ["q", "s"]
    if kind in INTEGERS and scales:
        tensors.append(stored(kind, scales, rng, "z"))
        operands.append("z")
    nodes = [node("DequantizeLinear", operands, ["w"], **given)]
    assert_same_as_reference(model_of(nodes, tensors), rng)


@pytest.mark.parametrize("kind", ["FLOAT8E5M2", "INT4"])
def test_they_are_moved_before_they_are_floats(kind: str, rng: np.random.Generator) -> None:
    nodes = [
        node("Transpose", ["q"], ["turned"], perm=[1, 0]),
        node("Reshape", ["turned", "shape"], ["flat"]),
        node("DequantizeLinear", ["flat", "s"], ["w"]),
    ]
    tensors = [
        stored(kind, SHAPE, rng, "q"), held("shape", np.asarray([6, 5], np.int64)),
        held("s", np.asarray(0.25, np.float32)),
    ]  # fmt: skip
    assert_same_as_reference(model_of(nodes, tensors, (6, 5)), rng)


@pytest.mark.parametrize("kind", ["FLOAT8E4M3FN", "UINT4"])
def test_floats_are_rounded_to_them_and_constants_are_nodes_too(
    kind: str, rng: np.random.Generator
) -> None:
    weight, scale = rng.uniform(0, 7, SHAPE).astype(np.float32), np.asarray(0.5, np.float32)
    nodes = [
        node("Constant", [], ["z"], value=stored(kind, (), rng, "z") if kind == "UINT4" else
             numpy_helper.from_array(np.zeros((), helper.tensor_dtype_to_np_dtype(
                 TensorProto.FLOAT8E4M3FN)), "z")),
        node("QuantizeLinear", ["f", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["w"]),
    ]  # fmt: skip
    assert_same_as_reference(model_of(nodes, [held("f", weight), held("s", scale)]), rng)


@pytest.mark.parametrize("kind", ["FLOAT8E4M3FN", "INT4"])
def test_they_are_repeated_and_passed_on(kind: str, rng: np.random.Generator) -> None:
    value = helper.make_tensor("v", getattr(TensorProto, kind), [1], [3])
    nodes = [
        node("ConstantOfShape", ["shape"], ["q"], value=value),
        node("Identity", ["q"], ["same"]),
        node("Cast", ["same"], ["w"], to=TensorProto.FLOAT),
    ]
    assert_same_as_reference(model_of(nodes, [held("shape", np.asarray(SHAPE))]), rng)


def test_what_would_be_computed_at_run_time_is_refused(rng: np.random.Generator) -> None:
    nodes = [
        node("DequantizeLinear", ["q", "x"], ["d"], axis=1, block_size=1),
        node("Add", ["d", "f"], ["w"]),
    ]
    tensors = [stored("INT4", SHAPE, rng, "q"), held("f", np.ones(SHAPE, np.float32))]
    with pytest.raises(UnsupportedModel, match="DequantizeLinear .* it is for constants"):
        load(model_of(nodes, tensors))


def test_an_output_that_is_one_is_refused(rng: np.random.Generator) -> None:
    model = model_of([node("Cast", ["q"], ["w"], to=TensorProto.FLOAT)],
                     [stored("INT4", SHAPE, rng, "q")])  # fmt: skip
    model.graph.node.append(node("Transpose", ["q"], ["t"]))
    model.graph.output.append(helper.make_tensor_value_info("t", TensorProto.INT4, SHAPE[::-1]))
    with pytest.raises(UnsupportedModel, match="element type INT4"):
        load(model)
