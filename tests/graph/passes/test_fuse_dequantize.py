"""Products of dequantized operands: computed from their integers, equal to onnx's reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

from ansorpy.api.project import open_project
from ansorpy.api.request import Request
from ansorpy.frontend.onnx import load
from ansorpy.graph.ops import Conv, MatMul
from ansorpy.graph.passes.fuse_dequantize import fuse_dequantize
from ansorpy.ir.dtypes import DType
from ansorpy.target import Target
from tests.frontend.models import graph_model, node
from tests.graph.executor import Array, compiled, run_network

KINDS = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8}


def integers(rng: np.random.Generator, kind: str, *shape: int) -> Array:
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max, shape, endpoint=True).astype(kind)


def scales(rng: np.random.Generator, *shape: int) -> Array:
    return rng.uniform(0.001, 0.002, shape).astype(np.float32)


def quantized_data(kind: str, constants: dict[str, Array]) -> list[NodeProto]:
    """``x`` quantized to ``q`` and back to ``d``, as exporters write it."""
    constants["xs"] = np.array(0.02, np.float32)
    constants["xz"] = np.array(7, kind)
    return [
        node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
        node("DequantizeLinear", ["q", "xs", "xz"], ["d"]),
    ]


def is_of_bytes(model: ModelProto) -> bool:
    """Whether the model's one product is of 8-bit integers; otherwise it must be of floats."""
    graph = fuse_dequantize(load(model))
    [product] = [n for n in graph.nodes if isinstance(n.op, Conv | MatMul)]
    types = [graph.types[name].dtype for name in (*product.inputs, product.output)]
    assert {t.is_float for t in types} in ({True}, {False})
    return [t.bits for t in types] == [8, 8, 32]


def assert_close(model: ModelProto, feeds: Mapping[str, Array]) -> None:
    wanted = ReferenceEvaluator(model).run(None, dict(feeds))
    for got, want in zip(run_network(compiled(model), feeds), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("count", [(), (6,)], ids=["one", "by channel"])
def test_convolutions(kind: str, groups: int, count: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    constants: dict[str, Array] = {
        "w": integers(rng, "uint8", 6, 8 // groups, 3, 2),
        "ws": scales(rng, *count),
        "wz": np.full(count, 128, np.uint8),
        "b": normal(rng, 6),
    }
    nodes = [
        *quantized_data(kind, constants),
        node("DequantizeLinear", ["w", "ws", "wz"], ["v"], axis=-4),
        node("Conv", ["d", "v", "b"], ["y"], pads=[1, 0, 1, 1], strides=[2, 1], group=groups),
    ]
    model = graph_model(nodes, {"x": (2, 8, 7, 5)}, ["y"], constants, 21)
    assert is_of_bytes(model)
    assert_close(model, {"x": normal(rng, 2, 8, 7, 5)})


@pytest.mark.parametrize("pads", [[0, 0], [1, 1]])
def test_zero_points_computed_at_run_time(pads: list[int]) -> None:
    """Padding with one of them would widen both operands: floats do better."""
    rng = np.random.default_rng(4)
    constants: dict[str, Array] = {"w": integers(rng, "int8", 6, 8, 3), "ws": scales(rng)}
    nodes = [
        node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("DequantizeLinear", ["w", "ws"], ["v"]),
        node("Conv", ["d", "v"], ["y"], pads=pads),
    ]
    model = graph_model(nodes, {"x": (2, 8, 9)}, ["y"], constants, 21)
    assert is_of_bytes(model) == (pads == [0, 0])
    assert_close(model, {"x": normal(rng, 2, 8, 9)})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["MatMul", "transposed", "Gemm"])
def test_products(kind: str, form: str) -> None:
    rng = np.random.default_rng(5)
    is_turned = form != "MatMul"
    shape, axis = ((4, 9), 0) if is_turned else ((9, 4), 1)
    constants: dict[str, Array] = {
        "w": integers(rng, "int8", *shape),
        "ws": scales(rng, 4),
        "b": normal(rng, 4),
    }
    weight = node("DequantizeLinear", ["w", "ws"], ["v"], axis=axis)
    product = {
        "MatMul": [node("MatMul", ["d", "v"], ["y"])],
        "transposed": [
            node("Transpose", ["v"], ["t"], perm=[1, 0]),
            node("MatMul", ["d", "t"], ["y"]),
        ],
        "Gemm": [node("Gemm", ["d", "v", "b"], ["y"], transB=1, alpha=0.5, beta=2.0)],
    }[form]
    nodes = [*quantized_data(kind, constants), weight, *product]
    model = graph_model(nodes, {"x": (5, 9)}, ["y"], constants, 21)
    assert is_of_bytes(model)
    assert_close(model, {"x": normal(rng, 5, 9)})


def test_stacks_of_matrices_in_half_precision() -> None:
    rng = np.random.default_rng(6)
    constants: dict[str, Array] = {
        "xs": np.array(0.02, np.float16), "w": integers(rng, "int8", 9, 4),
        "ws": scales(rng, 4).astype(np.float16),
    }  # fmt: skip
    nodes = [
        node("DequantizeLinear", ["x", "xs"], ["d"]),
        node("DequantizeLinear", ["w", "ws"], ["v"], axis=-1),
        node("MatMul", ["d", "v"], ["y"]),
    ]
    types = {"x": TensorProto.INT8, "y": TensorProto.FLOAT16}
    model = graph_model(nodes, {"x": (3, 5, 9)}, ["y"], constants, 21, types)
    assert is_of_bytes(model)
    x = integers(rng, "int8", 3, 5, 9)
    [got] = run_network(compiled(model), {"x": x})
    product = x.astype(np.int64) @ constants["w"].astype(np.int64)
    want = product * (np.float32(0.02) * constants["ws"].astype(np.float32))
    np.testing.assert_allclose(got.astype(np.float32), want, rtol=2e-3, atol=2e-3)


def test_targets_without_dot_products_of_bytes_keep_floats() -> None:
    rng = np.random.default_rng(8)
    constants: dict[str, Array] = {"w": integers(rng, "int8", 9, 4), "ws": scales(rng)}
    weight = node("DequantizeLinear", ["w", "ws"], ["v"])
    nodes = [*quantized_data("uint8", constants), weight, node("MatMul", ["d", "v"], ["y"])]
    model = graph_model(nodes, {"x": (5, 9)}, ["y"], constants, 21)
    wide = Target.parse("x86-64-v4")
    targets = {
        "v3": Target.parse("x86-64-v3"), "v4": wide, "arm": Target.parse("cortex-a76"),
        "vnni": replace(wide, features=f"{wide.features},+avx512vnni"),
    }  # fmt: skip
    found = {}
    for name, target in targets.items():
        project = open_project(model, Request.of(target=target, threads=1, effort="none"))
        dags = [call.dag for call in project.network.calls]
        found[name] = any(op.dtype is DType.INT32 for dag in dags for op in dag.computes)
    assert found == {"v3": False, "v4": False, "arm": False, "vnni": True}


def test_what_follows_is_as_before() -> None:
    """A block with a residual, quantized behind each operator: at most one step from onnx's."""
    rng = np.random.default_rng(9)
    constants: dict[str, Array] = {
        "w": integers(rng, "int8", 8, 8, 3, 3), "ws": scales(rng, 8),
        "ys": np.array(0.05, np.float32), "yz": np.array(131, np.uint8),
    }  # fmt: skip
    nodes = [
        *quantized_data("uint8", constants),
        node("DequantizeLinear", ["w", "ws"], ["v"], axis=0),
        node("Conv", ["d", "v"], ["c"], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]),
        node("QuantizeLinear", ["r", "ys", "yz"], ["rq"]),
        node("DequantizeLinear", ["rq", "ys", "yz"], ["rd"]),
        node("Add", ["rd", "d"], ["s"]),
        node("QuantizeLinear", ["s", "ys", "yz"], ["y"]),
    ]
    model = graph_model(nodes, {"x": (1, 8, 6, 5)}, ["y"], constants, 21, {"y": TensorProto.UINT8})
    x = normal(rng, 1, 8, 6, 5)
    (want,) = ReferenceEvaluator(model).run(None, {"x": x})
    (got,) = run_network(compiled(model), {"x": x})
    off = np.abs(got.astype(int) - np.asarray(want).astype(int))
    assert off.max() <= 1 and off.mean() < 0.01


def assert_left_in_floats(nodes: Sequence[NodeProto], constants: dict[str, Array]) -> None:
    rng = np.random.default_rng(11)
    model = graph_model(nodes, {"x": (5, 9)}, ["y"], constants, 21)
    assert not is_of_bytes(model)
    assert_close(model, {"x": normal(rng, 5, 9)})


def test_scales_along_the_sum_keep_floats() -> None:
    rng = np.random.default_rng(13)
    constants: dict[str, Array] = {"w": integers(rng, "int8", 9, 4), "ws": scales(rng, 9)}
    weight = node("DequantizeLinear", ["w", "ws"], ["v"], axis=0)
    nodes = [*quantized_data("uint8", constants), weight, node("MatMul", ["d", "v"], ["y"])]
    assert_left_in_floats(nodes, constants)


def test_weights_of_nine_bits_keep_floats() -> None:
    rng = np.random.default_rng(15)
    constants: dict[str, Array] = {
        "w": integers(rng, "uint8", 9, 4), "ws": scales(rng), "wz": np.array(200, np.uint8)
    }  # fmt: skip
    constants["w"][0, :2] = 0, 255
    weight = node("DequantizeLinear", ["w", "ws", "wz"], ["v"])
    nodes = [*quantized_data("uint8", constants), weight, node("MatMul", ["d", "v"], ["y"])]
    assert_left_in_floats(nodes, constants)


def test_products_of_two_activations_keep_floats() -> None:
    constants: dict[str, Array] = {}
    nodes = [
        *quantized_data("uint8", constants),
        node("Transpose", ["d"], ["t"]),
        node("MatMul", ["d", "t"], ["y"]),
    ]
    assert_left_in_floats(nodes, constants)


@pytest.mark.parametrize(("terms", "fits"), [(33_025, True), (33_026, False)])
def test_sums_beyond_32_bits_keep_floats(terms: int, fits: bool) -> None:
    """The largest sum that fits: differences of 255 with 255, so many times."""
    constants: dict[str, Array] = {
        "w": np.full((terms, 2), 127, np.int8), "ws": np.array(0.001, np.float32),
        "xs": np.array(0.01, np.float32), "xz": np.array(-128, np.int8),
    }  # fmt: skip
    nodes = [
        node("DequantizeLinear", ["x", "xs", "xz"], ["d"]),
        node("DequantizeLinear", ["w", "ws"], ["v"]),
        node("MatMul", ["d", "v"], ["y"]),
    ]
    types = {"x": TensorProto.INT8}
    model = graph_model(nodes, {"x": (1, terms)}, ["y"], constants, 21, types)
    assert is_of_bytes(model) == fits
    [got] = run_network(compiled(model), {"x": np.full((1, terms), 127, np.int8)})
    np.testing.assert_allclose(got, terms * 255 * 127 * 1e-5, rtol=1e-3)


def test_depthwise_convolutions_keep_floats() -> None:
    rng = np.random.default_rng(18)
    constants: dict[str, Array] = {"w": integers(rng, "int8", 8, 1, 3), "ws": scales(rng)}
    nodes = [
        *quantized_data("uint8", constants),
        node("DequantizeLinear", ["w", "ws"], ["v"]),
        node("Conv", ["d", "v"], ["y"], group=8),
    ]
    model = graph_model(nodes, {"x": (2, 8, 9)}, ["y"], constants, 21)
    assert not is_of_bytes(model)
    assert_close(model, {"x": normal(rng, 2, 8, 9)})


def test_weights_of_four_bits_keep_floats() -> None:
    rng = np.random.default_rng(19)
    constants: dict[str, Array] = {"ws": scales(rng)}
    weight = helper.make_tensor("w", TensorProto.INT4, (9, 4), rng.integers(-8, 8, 36).tolist())
    nodes = [
        *quantized_data("uint8", constants),
        node("Constant", [], ["w"], value=weight),
        node("DequantizeLinear", ["w", "ws"], ["v"]),
        node("MatMul", ["d", "v"], ["y"]),
    ]
    assert_left_in_floats(nodes, constants)


@pytest.mark.parametrize("kinds", [("int8",) * 3, ("int8", "uint8", "int8")])
def test_projections_of_one_tensor_are_one_product_if_their_weights_have_one_type(
    kinds: Sequence[str],
) -> None:
    rng = np.random.default_rng(21)
    constants: dict[str, Array] = {}
    nodes = quantized_data("uint8", constants)
    for number, kind in enumerate(kinds):
        constants |= {f"w{number}": integers(rng, kind, 8, 16), f"s{number}": scales(rng, 16)}
        nodes += [
            node("DequantizeLinear", [f"w{number}", f"s{number}"], [f"v{number}"], axis=1),
            node("MatMul", ["d", f"v{number}"], [f"p{number}"]),
        ]
    nodes += [
        node("Transpose", ["p1"], ["t"]),
        node("MatMul", ["p0", "t"], ["m"]),
        node("MatMul", ["m", "p2"], ["y"]),
    ]
    model = graph_model(nodes, {"x": (6, 8)}, ["y"], constants, 21)
    products = [call.name for call in compiled(model).calls if "sub_cast_mul" in call.name]
    assert len(products) == len(set(kinds))
    assert_close(model, {"x": normal(rng, 6, 8)})
