"""Weights stored as quarter-precision floats or 4-bit integers, against onnx's reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)
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


def model(
    nodes: Sequence[NodeProto], inputs: dict[str, tuple[str, Any]], outputs: dict[str, str],
    held: Sequence[TensorProto] = (), opset: int = 25,
) -> ModelProto:  # fmt: skip
    """*nodes* with inputs and outputs of the given types."""
    graph = helper.make_graph(
        nodes, "narrow",
        [helper.make_tensor_value_info(n, getattr(TensorProto, kind), shape)
         for n, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info(n, getattr(TensorProto, kind), None)
         for n, kind in outputs.items()],
        list(held),
    )  # fmt: skip
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=11)


def values(kind: str, shape: Sequence[int], rng: np.random.Generator) -> Array:
    return numpy_helper.to_array(stored(kind, shape, rng, "x"))


def assert_equal(found: Array, want: Any) -> None:
    """Equal, bit for bit but for NaN, and of one type."""
    exact = np.asarray(want)
    assert (found.dtype, found.shape) == (exact.dtype, exact.shape)
    np.testing.assert_array_equal(found.astype(np.float64), exact.astype(np.float64))


ALL = [*FLOATS, "FLOAT4E2M1", "INT4", "UINT4", "INT2", "UINT2"]


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (3, 5), (2, 1, 7)])
def test_ports_are_cast_both_ways(
    kind: str, shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    nodes = [
        node("Cast", ["q"], ["x"], to=TensorProto.FLOAT),
        node("Neg", ["x"], ["n"]),
        node("Cast", ["n"], ["y"], to=getattr(TensorProto, kind)),
    ]
    made = model(nodes, {"q": (kind, shape)}, {"y": kind})
    given = np.zeros(shape, helper.tensor_dtype_to_np_dtype(getattr(TensorProto, kind)))
    if shape != ():
        flat = given.reshape(-1)
        flat[...] = np.arange(flat.size).astype(given.dtype)
    [got] = run_network(compiled(made), {"q": given})
    [want] = ReferenceEvaluator(made).run(None, {"q": given})
    assert_equal(got, want)


@pytest.mark.parametrize("kind", [*FLOATS, "INT4"])
@pytest.mark.parametrize("wanted", ["BOOL", "INT64", "UINT16", "DOUBLE", "BFLOAT16", "INT4"])
def test_they_are_cast_to_every_type(kind: str, wanted: str, rng: np.random.Generator) -> None:
    nodes = [node("Cast", ["q"], ["y"], to=getattr(TensorProto, wanted))]
    made = model(nodes, {"q": (kind, (3, 5))}, {"y": wanted})
    codes = np.arange(15) % (4 if "2" in kind else 8)
    given = codes.reshape(3, 5).astype(helper.tensor_dtype_to_np_dtype(getattr(TensorProto, kind)))
    [got] = run_network(compiled(made), {"q": given})
    [want] = ReferenceEvaluator(made).run(None, {"q": given})
    assert_equal(got, want)


def test_movements_keep_the_type(rng: np.random.Generator) -> None:
    nodes = [
        node("Transpose", ["q"], ["t"], perm=[1, 0]),
        node("Reshape", ["t", "shape"], ["r"]),
        node("Concat", ["r", "r"], ["y"], axis=1),
    ]
    held = [numpy_helper.from_array(np.array([5, 3]), "shape")]
    for kind in ("INT4", "FLOAT8E5M2", "UINT2"):
        made = model(nodes, {"q": (kind, (3, 5))}, {"y": kind}, held)
        given = values(kind, (3, 5), rng) if kind != "UINT2" else np.ones(
            (3, 5), helper.tensor_dtype_to_np_dtype(TensorProto.UINT2))  # fmt: skip
        [got] = run_network(compiled(made), {"q": given})
        [want] = ReferenceEvaluator(made).run(None, {"q": given})
        assert_equal(got, want)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    ("scales", "given"),
    [((), {}), ((10,), {"axis": 1}), ((3, 2), {"axis": 1, "block_size": 5})],
)
def test_floats_are_quantised_at_run_time(
    kind: str, scales: tuple[int, ...], given: dict[str, Any], rng: np.random.Generator
) -> None:
    scale = np.asarray(rng.uniform(0.5, 2.0, scales), np.float32)
    nodes = [
        node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=getattr(TensorProto, kind), **given),
        node("DequantizeLinear", ["q", "s"], ["y"], **given),
    ]
    made = model(nodes, {"x": ("FLOAT", SHAPE)}, {"q": kind, "y": "FLOAT"}, [held("s", scale)])
    x = (rng.standard_normal(SHAPE) * 5).astype(np.float32)
    got = run_network(compiled(made), {"x": x})
    want = ReferenceEvaluator(made).run(None, {"x": x})
    for found, exact in zip(got, want, strict=True):
        assert_equal(found, exact)


def weights_of(kind: str, shape: tuple[int, int], block: int, rng: np.random.Generator) -> (
    tuple[list[NodeProto], list[TensorProto]]
):  # fmt: skip
    """Nodes that dequantize a constant of more elements than are expanded, by blocks of rows."""
    scale = rng.uniform(0.1, 1.0, (shape[0] // block, shape[1])).astype(np.float32)
    nodes = [
        node("DequantizeLinear", ["q", "s"], ["w"], axis=0, block_size=block),
        node("MatMul", ["x", "w"], ["y"]),
    ]
    return nodes, [stored(kind, shape, rng, "q"), held("s", scale)]


@pytest.mark.parametrize("kind", ["INT4", "UINT4", "FLOAT8E4M3FN"])
@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("columns", [48, 47])
def test_products_read_weights_as_they_are_stored(
    kind: str, rows: int, columns: int, rng: np.random.Generator
) -> None:
    nodes, held_ = weights_of(kind, (64, columns), 16, rng)
    made = model(nodes, {"x": ("FLOAT", (2, rows, 64))}, {"y": "FLOAT"}, held_)
    network = compiled(made)
    assert len(network.calls) == 1
    sizes = sorted(array.nbytes for array in network.calls[0].constants.values())
    in_a_byte = 1 if kind.startswith("FLOAT8") else 2
    assert sizes == sorted([-(-64 * columns // in_a_byte), 4 * columns * 4])
    x = rng.standard_normal((2, rows, 64)).astype(np.float32)
    [got] = run_network(network, {"x": x})
    [want] = ReferenceEvaluator(made).run(None, {"x": x})
    np.testing.assert_allclose(got, np.asarray(want), rtol=0, atol=1e-5 * np.abs(want).max())


def test_other_readers_get_constants_that_are_expanded_once(rng: np.random.Generator) -> None:
    nodes = [
        node("DequantizeLinear", ["q", "s"], ["w"]),
        node("Conv", ["x", "w"], ["y"]),
    ]
    tensors = [stored("INT4", (16, 8, 3, 3), rng, "q"), held("s", np.asarray(0.5, np.float32))]
    made = model(nodes, {"x": ("FLOAT", (1, 8, 6, 6))}, {"y": "FLOAT"}, tensors)
    network = compiled(made)
    constants = [a.dtype for call in network.calls for a in call.constants.values()]
    assert constants == [np.float32]
    x = rng.standard_normal((1, 8, 6, 6)).astype(np.float32)
    [got] = run_network(network, {"x": x})
    [want] = ReferenceEvaluator(made).run(None, {"x": x})
    np.testing.assert_allclose(got, np.asarray(want), rtol=0, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("axis", [1, 2])
def test_constants_that_are_expanded_keep_their_axes(axis: int, rng: np.random.Generator) -> None:
    nodes = [
        node("DequantizeLinear", ["q", "s"], ["w"]),
        node("Add", ["x", "w"], ["z"]),
        node("ReduceSum", ["z", "axes"], ["y"]),
    ]
    tensors = [
        stored("FLOAT8E4M3FN", (1, 1, 2048), rng, "q"),
        held("s", np.asarray(0.5, np.float32)), held("axes", np.asarray([axis])),
    ]  # fmt: skip
    made = model(nodes, {"x": ("FLOAT", (4, 2048))}, {"y": "FLOAT"}, tensors)
    x = rng.standard_normal((4, 2048)).astype(np.float32)
    [got] = run_network(compiled(made), {"x": x})
    [result] = ReferenceEvaluator(made).run(None, {"x": x})
    want = np.asarray(result)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())


def test_open_sizes(rng: np.random.Generator) -> None:
    nodes = [node("Cast", ["q"], ["x"], to=TensorProto.FLOAT),
             node("Cast", ["x"], ["y"], to=TensorProto.INT4)]  # fmt: skip
    made = model(nodes, {"q": ("UINT4", ("n", 3))}, {"y": "INT4"})
    graph = load(made, dims={"n": (1, 9)})
    assert [str(e) for e in graph.ports["q"].shape] == ["n", "3"]


@pytest.mark.parametrize("kind", ["FLOAT8E4M3FN", "UINT4"])
def test_arithmetic_on_them_is_refused(kind: str, rng: np.random.Generator) -> None:
    made = model([node("Add", ["q", "q"], ["y"])], {"q": (kind, (3, 5))}, {"y": kind})
    with pytest.raises(UnsupportedModel, match=f"(?s)element type {kind.lower()[:5]}.*by a Cast"):
        load(made)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("FLOAT8E5M2", "UINT8"), ("INT8", "FLOAT8E4M3FN"), ("UINT4", "INT4"), ("FLOAT4E2M1", "UINT4"),
     ("UINT4", "FLOAT4E2M1"), ("FLOAT16", "INT16"), ("UINT16", "BFLOAT16"), ("INT16", "FLOAT16")],
)  # fmt: skip
def test_bits_are_kept(given: str, wanted: str) -> None:
    made = model([node("BitCast", ["q"], ["y"], to=getattr(TensorProto, wanted))],
                 {"q": (given, (3, 5))}, {"y": wanted}, opset=26)  # fmt: skip
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(getattr(TensorProto, given)))
    exact = dtype.itemsize == 2
    codes: Array = np.arange(15).astype(np.uint16 if exact else np.uint8)
    array = codes.view(dtype) if exact or given.startswith("FLOAT") else codes.astype(dtype)
    [got] = run_network(compiled(made), {"q": array.reshape(3, 5)})
    mask = 0xFFFF if exact else 0xFF if "8" in given else 0xF
    found: Array = got.reshape(-1).view(np.uint16 if exact else np.uint8)
    np.testing.assert_array_equal(found & mask, codes & mask)


def test_complex_numbers_are_refused() -> None:
    made = model([node("Identity", ["x"], ["y"])], {"x": ("COMPLEX64", (2,))}, {"y": "COMPLEX64"})
    with pytest.raises(UnsupportedModel, match="element type COMPLEX64"):
        load(made)


def bodied(
    nodes: Sequence[NodeProto], inputs: dict[str, tuple[str, Any]],
    outputs: dict[str, tuple[str, Any]],
) -> GraphProto:  # fmt: skip
    def infos(of: dict[str, tuple[str, Any]]) -> list[ValueInfoProto]:
        return [helper.make_tensor_value_info(name, getattr(TensorProto, kind), shape)
                for name, (kind, shape) in of.items()]  # fmt: skip

    return helper.make_graph(nodes, "body", infos(inputs), infos(outputs))


LOOP = {"i": ("INT64", ()), "c": ("BOOL", ())}


@pytest.mark.parametrize("kind", ["FLOAT8E4M3FN", "FLOAT4E2M1", "INT4"])
@pytest.mark.parametrize("rows", [3, 7], ids=["unrolled", "compiled"])
def test_a_scan_reads_rows_of_them(kind: str, rows: int, rng: np.random.Generator) -> None:
    body = bodied(
        [node("Cast", ["r"], ["f"], to=TensorProto.FLOAT)],
        {"r": (kind, (4,))}, {"f": ("FLOAT", (4,))},
    )  # fmt: skip
    scan = node("Scan", ["q"], ["y"], body=body, num_scan_inputs=1)
    made = model([scan], {"q": (kind, (rows, 4))}, {"y": "FLOAT"})
    codes = rng.integers(0, 8, (rows, 4))
    given = codes.astype(helper.tensor_dtype_to_np_dtype(getattr(TensorProto, kind)))
    [got] = run_network(compiled(made), {"q": given})
    assert_equal(got, given.astype(np.float32))


@pytest.mark.parametrize("trips", [2, 6], ids=["unrolled", "compiled"])
def test_a_loop_carries_them(trips: int, rng: np.random.Generator) -> None:
    kind = "FLOAT8E4M3FN"
    state = {"q": (kind, (4,)), "a": ("FLOAT", (4,))}
    nodes = [
        node("Identity", ["c"], ["c2"]), node("Identity", ["q"], ["q2"]),
        node("Cast", ["q"], ["f"], to=TensorProto.FLOAT), node("Add", ["a", "f"], ["a2"]),
    ]  # fmt: skip
    outputs = {f"{name}2": of for name, of in (("c", LOOP["c"]), *state.items())}
    loop = node(
        "Loop", ["trips", "", "w", "x"], ["v", "y"], body=bodied(nodes, LOOP | state, outputs)
    )
    inputs = {"w": (kind, (4,)), "x": ("FLOAT", (4,))}
    made = model([loop], inputs, {"v": kind, "y": "FLOAT"}, [held("trips", np.asarray(trips))])
    feeds = {"w": values(kind, (4,), rng), "x": rng.integers(-9, 9, 4).astype(np.float32)}
    v, y = run_network(compiled(made), feeds)
    assert_equal(v, feeds["w"])
    assert_equal(y, feeds["x"] + trips * feeds["w"].astype(np.float32))


@pytest.mark.parametrize("trips", [0, 3])
def test_rows_that_a_loop_makes_of_them(trips: int, rng: np.random.Generator) -> None:
    kind = "FLOAT8E5M2"
    nodes = [node("Identity", ["c"], ["c2"]), node("Identity", ["w"], ["r"])]
    body = bodied(nodes, LOOP, {"c2": LOOP["c"], "r": (kind, (4,))})
    loop = node("Loop", ["trips", ""], ["rows"], body=body)
    made = model(
        [loop, node("Cast", ["rows"], ["y"], to=TensorProto.FLOAT)], {"w": (kind, (4,))},
        {"rows": kind, "y": "FLOAT"}, [held("trips", np.asarray(trips))],
    )  # fmt: skip
    given = values(kind, (4,), rng)
    rows, y = run_network(compiled(made), {"w": given})
    want = np.repeat(given[np.newaxis], trips, axis=0)
    assert_equal(rows, want)
    assert_equal(y, want.astype(np.float32))


@pytest.mark.parametrize("trips", [2, 6], ids=["unrolled", "compiled"])
def test_a_loop_carries_none_of_them(trips: int) -> None:
    """What has no elements still has a type, which CastLike asks for."""
    state = {"q": ("FLOAT8E4M3FN", (0,)), "a": ("FLOAT", (4,))}
    nodes = [
        node("Identity", ["c"], ["c2"]), node("Identity", ["q"], ["q2"]),
        node("CastLike", ["a", "q"], ["n"]), node("Cast", ["n"], ["f"], to=TensorProto.FLOAT),
        node("Add", ["a", "f"], ["a2"]),
    ]  # fmt: skip
    outputs = {f"{name}2": of for name, of in (("c", LOOP["c"]), *state.items())}
    loop = node(
        "Loop", ["trips", "", "q", "x"], ["v", "y"], body=bodied(nodes, LOOP | state, outputs)
    )
    inputs = {"q": state["q"], "x": state["a"]}
    made = model(
        [loop], inputs, {"v": "FLOAT8E4M3FN", "y": "FLOAT"}, [held("trips", np.asarray(trips))]
    )
    none = np.zeros(0, helper.tensor_dtype_to_np_dtype(TensorProto.FLOAT8E4M3FN))
    x = np.array([1.5, -0.75, 0.0, 3.5], np.float32)
    v, y = run_network(compiled(made), {"q": none, "x": x})
    assert_equal(v, none)
    assert_equal(y, x * 2**trips)


@pytest.mark.parametrize("counts", [False, True])
def test_a_choice_between_none_of_them(counts: bool) -> None:
    """A run computes both branches if one of them counts what it keeps."""
    kind = "FLOAT8E4M3FN"
    kept = [node("Compress", ["x", "m"], ["k"], axis=0)] if counts else [
        node("Identity", ["x"], ["k"])
    ]  # fmt: skip
    results = {"s": ("FLOAT", ()), "e": (kind, (0,))}
    end = [node("ReduceSum", ["k"], ["s"], keepdims=0), node("Identity", ["q"], ["e"])]
    other = [node("ReduceMax", ["x"], ["s"], keepdims=0), node("Identity", ["p"], ["e"])]
    branch = node(
        "If", ["flag"], ["y", "r"], then_branch=bodied([*kept, *end], {}, results),
        else_branch=bodied(other, {}, results),
    )  # fmt: skip
    inputs = {"x": ("FLOAT", (4,)), "m": ("BOOL", (4,)), "flag": ("BOOL", ()), "q": (kind, (0,)),
              "p": (kind, (0,))}  # fmt: skip
    made = model([branch], inputs, {"y": "FLOAT", "r": kind})
    none = np.zeros(0, helper.tensor_dtype_to_np_dtype(TensorProto.FLOAT8E4M3FN))
    feeds = {"x": np.array([1, 2, 3, 4], np.float32), "m": np.ones(4, bool), "q": none, "p": none}
    for flag in (False, True):
        y, r = run_network(compiled(made), feeds | {"flag": np.asarray(flag)})
        assert_equal(y, np.float32(10 if flag else 4))
        assert_equal(r, none)


def test_a_choice_between_them_is_refused() -> None:
    """A run computes both branches, as one of them counts what it keeps."""
    kind = "FLOAT8E4M3FN"
    then = bodied(
        [node("Compress", ["x", "m"], ["k"], axis=0), node("ReduceSum", ["k"], ["s"], keepdims=0),
         node("Cast", ["s"], ["t"], to=getattr(TensorProto, kind))],
        {}, {"t": (kind, ())},
    )  # fmt: skip
    other = bodied([node("Identity", ["q"], ["e"])], {}, {"e": (kind, ())})
    nodes = [
        node("If", ["flag"], ["r"], then_branch=then, else_branch=other),
        node("Cast", ["r"], ["y"], to=TensorProto.FLOAT),
    ]
    inputs = {"x": ("FLOAT", (4,)), "m": ("BOOL", (4,)), "flag": ("BOOL", ()), "q": (kind, ())}
    with pytest.raises(UnsupportedModel, match="element type float8_e4m3fn"):
        load(model(nodes, inputs, {"y": "FLOAT"}))
