"""Operators on integers of every width, against onnx's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from tests.frontend.models import node
from tests.graph.executor import Array, compiled, run_network

TYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def assert_same(op: str, arrays: list[Array], opset: int = 25, **attributes: Any) -> None:
    """The results of one node on *arrays* are those of the reference."""
    names = [f"x{n}" for n in range(len(arrays))]
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names, arrays, strict=True)
    ]
    made = node(op, names, ["y"], **attributes)
    feeds = dict(zip(names, arrays, strict=True))
    outputs = [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)]
    graph = helper.make_graph([made], op, inputs, outputs)
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    [want] = ReferenceEvaluator(model).run(None, feeds)
    exact = np.asarray(want)
    kind = helper.np_dtype_to_tensor_dtype(exact.dtype)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", kind, exact.shape))
    [got] = run_network(compiled(model), feeds)
    assert got.dtype == exact.dtype
    np.testing.assert_array_equal(got, exact)


def numbers(dtype: Any, shape: tuple[int, ...], rng: np.random.Generator, low: int = -9) -> Array:
    least = max(low, int(np.iinfo(dtype).min))
    return np.asarray(rng.integers(least, 10, shape)).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
def test_bitwise(op: str, dtype: Any, rng: np.random.Generator) -> None:
    assert_same(op, [numbers(dtype, (3, 1, 7), rng), numbers(dtype, (5, 7), rng)])
    assert_same("BitwiseNot", [numbers(dtype, (3, 5), rng)])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts(direction: str, dtype: Any, rng: np.random.Generator) -> None:
    arrays = [numbers(dtype, (3, 7), rng), numbers(dtype, (7,), rng)]
    assert_same("BitShift", arrays, direction=direction)


@pytest.mark.parametrize("dtype", TYPES)
def test_arithmetic(dtype: Any, rng: np.random.Generator) -> None:
    a, b = numbers(dtype, (3, 7), rng), numbers(dtype, (3, 7), rng)
    b[b == 0] = 3
    for op in ("Add", "Sub", "Mul", "Max", "Min", "Mod"):
        assert_same(op, [a, b])
    assert_same("Mod", [a, b], fmod=1)
    assert_same("Sign", [a])
    assert_same("Abs", [a])
    assert_same("Clip", [a, np.array(2, dtype), np.array(5, dtype)])
    assert_same("Where", [a > b, a, b])


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_reductions(dtype: Any, rng: np.random.Generator) -> None:
    x = numbers(dtype, (3, 5, 2), rng)
    axes = np.array([1])
    for op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceSumSquare"):
        _reduced(op, x, axes)
    _reduced("ReduceMean", np.abs(x.astype(np.int64)).astype(dtype), axes)
    _reduced("ReduceL2", x, axes)


def _reduced(op: str, x: Array, axes: Array) -> None:
    nodes = [node(op, ["x", "axes"], ["y"], keepdims=0)]
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(
        nodes, op, [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_tensor_value_info("y", kind, (3, 2))],
        [helper.make_tensor("axes", TensorProto.INT64, [1], axes)],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    [got] = run_network(compiled(model), {"x": x})
    [want] = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(got, np.asarray(want).astype(x.dtype), op)


@pytest.mark.parametrize("base", [np.int32, np.int64])
@pytest.mark.parametrize("exponent", [np.int32, np.int64, np.uint32, np.float32])
def test_powers(base: Any, exponent: Any, rng: np.random.Generator) -> None:
    x = numbers(base, (3, 7), rng)
    y = rng.integers(0, 8, (7,)).astype(exponent)
    assert_same("Pow", [x, y], 15)
    assert_same(
        "Pow", [np.array([-1, 0, 1, 2, -1], base), np.array([63, 64, 65, 30, 2], exponent)], 15
    )
    if exponent is not np.float32:
        large = [np.array([2, -2, 6, 0, 4], base), np.array([64, 65, 70, 99, 10**9], exponent)]
        assert_same("Pow", large, 15)
