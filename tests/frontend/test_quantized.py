"""Products of small integers against onnx's reference, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from tests.frontend.models import graph_model, node
from tests.graph.executor import Array, compiled, run_network

KINDS = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8}


def integers(rng: np.random.Generator, kind: str, *shape: int) -> Array:
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max, shape, endpoint=True).astype(kind)


def number(kind: str, value: float) -> Array:
    return np.array(value, kind)


def assert_equal(model: ModelProto, feeds: Mapping[str, Array]) -> None:
    """Every output is the reference's, to the last bit."""
    wanted = ReferenceEvaluator(model).run(None, dict(feeds))
    for got, want in zip(run_network(compiled(model), feeds), wanted, strict=True):
        np.testing.assert_array_equal(got, np.asarray(want))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("by_channel", [False, True])
def test_convolutions(kind: str, groups: int, by_channel: bool) -> None:
    rng = np.random.default_rng(3)
    count = (6,) if by_channel else ()
    constants: dict[str, Array] = {
        "xs": number("float32", 0.02),
        "xz": integers(rng, "uint8"),
        "w": integers(rng, kind, 6, 3 // groups, 3, 2),
        "ws": rng.uniform(0.001, 0.002, count).astype(np.float32),
        "wz": integers(rng, kind, *count),
        "ys": number("float32", 0.04),
        "yz": integers(rng, "uint8"),
        "b": rng.integers(-500, 500, 6).astype(np.int32),
    }
    given: dict[str, Any] = {"pads": [1, 0, 1, 1], "strides": [2, 1], "group": groups}
    one = node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"], **given)
    types = {"x": TensorProto.UINT8, "y": TensorProto.UINT8}
    model = graph_model([one], {"x": (2, 3, 7, 5)}, ["y"], constants, 17, types)
    assert_equal(model, {"x": integers(rng, "uint8", 2, 3, 7, 5)})


def test_zero_points_of_zero_are_not_taken_off() -> None:
    rng = np.random.default_rng(13)
    constants: dict[str, Array] = {"w": integers(rng, "int8", 3, 2), "z": number("int8", 0)}
    one = node("MatMulInteger", ["x", "w", "z", "z"], ["y"])
    types = {"x": TensorProto.INT8, "y": TensorProto.INT32}
    model = graph_model([one], {"x": (5, 3)}, ["y"], constants, 17, types)
    assert [n.op.label for n in load(model).nodes] == ["matmul"]
    assert_equal(model, {"x": integers(rng, "int8", 5, 3)})


def test_sums_are_not_rounded() -> None:
    """A float32 sum of as many products would lose its last bits."""
    rng = np.random.default_rng(5)
    constants: dict[str, Array] = {
        "w": integers(rng, "uint8", 3, 257, 3, 3) // 16 + 239,
        "z": number("uint8", 0),
    }
    one = node("ConvInteger", ["x", "w", "z", "z"], ["y"])
    types = {"x": TensorProto.UINT8, "y": TensorProto.INT32}
    model = graph_model([one], {"x": (1, 257, 4, 3)}, ["y"], constants, 17, types)
    assert_equal(model, {"x": integers(rng, "uint8", 1, 257, 4, 3) // 16 + 239})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by_row", [False, True])
def test_products(kind: str, by_row: bool) -> None:
    rng = np.random.default_rng(7)
    rows, columns = ((5,), (4,)) if by_row else ((), ())
    constants: dict[str, Array] = {
        "as": rng.uniform(0.01, 0.02, rows).astype(np.float32),
        "az": integers(rng, kind, *rows),
        "b": integers(rng, kind, 9, 4),
        "bs": rng.uniform(0.001, 0.002, columns).astype(np.float32),
        "bz": integers(rng, kind, *columns),
        "ys": number("float32", 0.3),
        "yz": integers(rng, kind),
    }
    one = node("QLinearMatMul", ["a", "as", "az", "b", "bs", "bz", "ys", "yz"], ["y"])
    types = {"a": KINDS[kind], "y": KINDS[kind]}
    model = graph_model([one], {"a": (5, 9)}, ["y"], constants, 17, types)
    feeds = {"a": integers(rng, kind, 5, 9)}
    a, b = (
        v.astype(np.int64) - z for v, z in (
            (feeds["a"], constants["az"].astype(np.int64).reshape((-1, 1) if by_row else ())),
            (constants["b"], constants["bz"].astype(np.int64)),
        )
    )  # fmt: skip
    scale = constants["as"].reshape((-1, 1) if by_row else ()) * constants["bs"] / constants["ys"]
    info = np.iinfo(kind)
    real = np.round((a @ b).astype(np.float32) * scale) + constants["yz"]
    want = np.clip(real, info.min, info.max).astype(kind)
    np.testing.assert_array_equal(run_network(compiled(model), feeds)[0], want)


def test_products_in_half_precision() -> None:
    """Sums beyond the largest number, and scales whose product is below the least normal one."""
    names = ["a", "as", "az", "b", "bs", "bz", "ys", "yz"]
    held: dict[str, Array] = {
        "as": number("float16", 2**-12), "az": number("uint8", 0),
        "b": np.full((9, 2), [250, 3], np.uint8), "bs": number("float16", 2**-12),
        "bz": number("uint8", 0), "ys": number("float16", 2**-10), "yz": number("uint8", 7),
    }  # fmt: skip
    types = {"a": TensorProto.UINT8, "y": TensorProto.UINT8}
    model = graph_model(
        [node("QLinearMatMul", names, ["y"])], {"a": (1, 9)}, ["y"], held, 21, types
    )
    [got] = run_network(compiled(model), {"a": np.full((1, 9), 255, np.uint8)})
    np.testing.assert_array_equal(got, [[round(9 * 255 * 250 / 2**14) + 7, 7]])


def test_a_transformer_layer_quantized_as_it_runs() -> None:
    """What exporters write for a linear layer: data quantized by its own range."""
    rng = np.random.default_rng(11)
    constants: dict[str, Array] = {
        "w": integers(rng, "uint8", 33, 17),
        "wz": number("uint8", 121),
        "ws": number("float32", 0.01),
    }
    nodes = [
        node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        node("MatMulInteger", ["q", "w", "z", "wz"], ["p"]),
        node("Cast", ["p"], ["f"], to=TensorProto.FLOAT),
        node("Mul", ["s", "ws"], ["scale"]),
        node("Mul", ["f", "scale"], ["y"]),
    ]
    types = {"q": TensorProto.UINT8, "z": TensorProto.UINT8}
    model = graph_model(nodes, {"x": (2, 5, 33)}, ["y", "q", "s", "z"], constants, 17, types)
    x = rng.normal(size=(2, 5, 33)).astype(np.float32)
    wanted = ReferenceEvaluator(model).run(None, {"x": x})
    network = compiled(model)
    for got, want in zip(run_network(network, {"x": x}), wanted, strict=True):
        np.testing.assert_allclose(got, np.asarray(want), rtol=1e-6)


def test_data_of_zeros_is_quantized() -> None:
    one = node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])
    types = {"q": TensorProto.UINT8, "z": TensorProto.UINT8}
    model = graph_model([one], {"x": (3, 4)}, ["q", "s", "z"], {}, 17, types)
    data, scale, zero = run_network(compiled(model), {"x": np.zeros((3, 4), np.float32)})
    assert (data == zero).all() and scale == 1


def test_scales_that_do_not_fit_are_refused() -> None:
    rng = np.random.default_rng(2)
    constants: dict[str, Array] = {
        "w": integers(rng, "uint8", 4, 3, 1, 1),
        "z": number("uint8", 3),
        "wz": integers(rng, "uint8", 3),
    }
    one = node("ConvInteger", ["x", "w", "z", "wz"], ["y"])
    types = {"x": TensorProto.UINT8, "y": TensorProto.INT32}
    model = graph_model([one], {"x": (1, 3, 2, 2)}, ["y"], constants, 17, types)
    with pytest.raises(UnsupportedModel) as caught:
        load(model)
    assert "of shape (3,)" in caught.value.rows[0].attribute


@pytest.mark.parametrize(
    ("left", "right"), [((9,), (9, 4)), ((3, 9), (9,)), ((9,), (9,)), ((2, 3, 9), (9,))]
)
@pytest.mark.parametrize("constant", [False, True])
def test_vectors_are_rows_and_columns(
    left: tuple[int, ...], right: tuple[int, ...], constant: bool, rng: np.random.Generator
) -> None:
    a, b = integers(rng, "uint8", *left), integers(rng, "int8", *right)
    types = {"a": TensorProto.UINT8, "b": TensorProto.INT8, "y": TensorProto.INT32}
    held: dict[str, Array] = {"az": number("uint8", 7), "bz": number("int8", -3)}
    held |= {"b": b} if constant else {}
    given: dict[str, Array] = {"a": a} if constant else {"a": a, "b": b}
    one = node("MatMulInteger", ["a", "b", "az", "bz"], ["y"])
    shapes = {name: value.shape for name, value in given.items()}
    (got,) = run_network(compiled(graph_model([one], shapes, ["y"], held, 17, types)), given)
    np.testing.assert_array_equal(got, (a.astype(np.int32) - 7) @ (b.astype(np.int32) + 3))
    assert got.dtype == np.int32


def test_quantized_products_of_vectors(rng: np.random.Generator) -> None:
    names = ["a", "as", "az", "b", "bs", "bz", "ys", "yz"]
    held: dict[str, Array] = {
        "as": number("float32", 0.02), "az": number("uint8", 11), "b": integers(rng, "uint8", 9),
        "bs": number("float32", 0.01), "bz": number("uint8", 90), "ys": number("float32", 0.2),
        "yz": number("uint8", 100),
    }  # fmt: skip
    types = {"a": TensorProto.UINT8, "y": TensorProto.UINT8}
    model = graph_model(
        [node("QLinearMatMul", names, ["y"])], {"a": (5, 9)}, ["y"], held, 17, types
    )
    assert_equal(model, {"a": integers(rng, "uint8", 5, 9)})


@pytest.mark.parametrize(("op_type", "shape"), [("MatMulInteger", ()), ("ConvInteger", (3,))])
def test_operands_of_too_few_dimensions_are_refused(op_type: str, shape: tuple[int, ...]) -> None:
    constants: dict[str, Array] = {"w": np.ones((3, 2), np.uint8), "z": number("uint8", 3)}
    one = node(op_type, ["x", "w", "z"], ["y"])
    types = {"x": TensorProto.UINT8, "y": TensorProto.INT32}
    graph = helper.make_graph(
        [one], "test",
        [helper.make_tensor_value_info("x", types["x"], shape)],
        [helper.make_tensor_value_info("y", types["y"], None)],
        [numpy_helper.from_array(a, n) for n, a in constants.items()],
    )  # fmt: skip
    with pytest.raises(UnsupportedModel) as caught:
        load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    [row] = caught.value.rows
    assert row.op == op_type
