"""Operators whose results' sizes depend on data, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto
from onnx.reference import ReferenceEvaluator

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.graph import partition
from ansorpy.graph.ir import text
from tests.frontend.models import graph_model, node
from tests.graph.executor import Array, compiled, run_network
from tests.peer import peer

Rng = np.random.Generator
LONG = TensorProto.INT64
KINDS = {"FLOAT": np.float32, "INT64": np.int64, "BOOL": np.bool_, "UINT8": np.uint8}


def by_onnxruntime(model: ModelProto, feeds: dict[str, Array]) -> list[Array]:
    session = peer(model)
    found: list[Array] = session.run([o.name for o in model.graph.output], feeds)
    return found


def assert_same(model: ModelProto, feeds: dict[str, Array]) -> list[Array]:
    got = run_network(compiled(model), feeds)
    for result, want in zip(got, by_onnxruntime(model, feeds), strict=True):
        assert result.shape == want.shape
        np.testing.assert_array_equal(result, want)
    return got


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (2, 1, 3, 4), (0,), (2, 0)])
def test_places_of_what_is_not_zero(shape: tuple[int, ...], kind: str, rng: Rng) -> None:
    code = getattr(TensorProto, kind)
    model = graph_model(
        [node("NonZero", ["x"], ["y"])], {"x": shape}, ["y"], types={"x": code, "y": LONG}
    )
    for x in (rng.integers(0, 2, shape), np.zeros(shape), np.ones(shape)):
        assert_same(model, {"x": x.astype(KINDS[kind])})


@pytest.mark.parametrize("is_constant", [False, True])
def test_the_place_of_a_number_has_no_axis_but_is_counted(is_constant: bool, rng: Rng) -> None:
    """As onnx defines it; onnxruntime gives it an axis."""
    nodes = [
        node("NonZero", ["x"], ["y"]), node("Shape", ["y"], ["size"]), node("Neg", ["z"], ["other"])
    ]  # fmt: skip
    types = {"y": LONG, "size": LONG}
    for x in (rng.standard_normal((), np.float32), np.zeros((), np.float32)):
        feeds: dict[str, Array] = {"x": np.asarray(x), "z": rng.standard_normal(2, np.float32)}
        held = {"x": feeds.pop("x")} if is_constant else {}
        shapes = {name: array.shape for name, array in feeds.items()}
        model = graph_model(nodes, shapes, ["y", "size", "other"], held, types=types)
        wanted = ReferenceEvaluator(model).run(None, feeds)
        for got, want in zip(run_network(compiled(model), feeds), wanted, strict=True):
            np.testing.assert_array_equal(got, want, strict=True)


def test_what_is_not_zero_is_gathered_and_counted(rng: Rng) -> None:
    """A size that one call counts is an extent of others, also of values that only it defines."""
    nodes = [
        node("NonZero", ["x"], ["places"]),
        node("Transpose", ["places"], ["indices"], perm=[1, 0]),
        node("GatherND", ["w", "indices"], ["chosen"]),
        node("Mul", ["chosen", "chosen"], ["squares"]),
        node("Shape", ["chosen"], ["size"]),
        node("ReduceSum", ["squares"], ["total"], keepdims=0),
        node("Concat", ["squares", "chosen"], ["both"], axis=0),
        node("ConstantOfShape", ["size"], ["zeros"]),
    ]
    outputs = ["both", "size", "total", "zeros", "places"]
    types = {"size": LONG, "places": LONG}
    model = graph_model(nodes, {"x": (5, 7), "w": (5, 7)}, outputs, types=types)
    for share in (0.0, 0.3, 1.0):
        x = (rng.random((5, 7)) < share).astype(np.float32)
        w = rng.integers(-5, 5, (5, 7)).astype(np.float32)
        assert_same(model, {"x": x, "w": w})
    assert "size places.count=0..35 = places.count" in text(load(model))


@pytest.mark.parametrize(("axis", "given"), [
    (None, 5), (None, 15), (0, 3), (1, 5), (-1, 4), (1, 9)
])  # fmt: skip
def test_slices_where_a_condition_holds(axis: int | None, given: int, rng: Rng) -> None:
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    one = node("Compress", ["x", "c"], ["y"], **attributes)
    model = graph_model([one], {"x": (3, 5), "c": (given,)}, ["y"], types={"c": TensorProto.BOOL})
    for share in (0.0, 0.5, 1.0):
        x = rng.standard_normal((3, 5)).astype(np.float32)
        keeps = rng.random(given) < share
        expected = np.compress(keeps[: 15 if axis is None else (3, 5)[axis]], x, axis)
        np.testing.assert_array_equal(
            run_network(compiled(model), {"x": x, "c": keeps})[0], expected
        )


def test_slices_without_elements_are_counted_too() -> None:
    one = node("Compress", ["x", "c"], ["y"], axis=1)
    types = {"c": TensorProto.BOOL}
    model = graph_model([one], {"x": (0, 4), "c": (4,)}, ["y"], types=types)
    feeds = {"x": np.zeros((0, 4), np.float32), "c": np.array([True, False, True, True])}
    (got,) = run_network(compiled(model), feeds)
    assert got.shape == (0, 3)


@pytest.mark.parametrize(("sorted_", "kind"), [(0, "FLOAT"), (1, "INT64")])
@pytest.mark.parametrize(("shape", "axis"), [
    ((1,), None), ((17,), None), ((4, 5), None), ((7, 2), 0), ((2, 9), 1), ((3, 4, 2), -2)
])  # fmt: skip
def test_distinct_elements(
    shape: tuple[int, ...], axis: int | None, sorted_: int, kind: str, rng: Rng
) -> None:
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    names = ["y", "first", "inverse", "counts"]
    one = node("Unique", ["x"], names, sorted=sorted_, **attributes)
    code, dtype = getattr(TensorProto, kind), KINDS[kind]
    types = {"x": code, "y": code, **dict.fromkeys(names[1:], LONG)}
    model = graph_model([one], {"x": shape}, names, types=types)
    for high in (1, 3, 40):
        assert_same(model, {"x": rng.integers(0, high, shape).astype(dtype)})


def test_what_is_no_number_is_one_element() -> None:
    one = node("Unique", ["x"], ["y", "", "inverse"])
    model = graph_model([one], {"x": (5,)}, ["y", "inverse"], types={"inverse": LONG})
    x = np.asarray([np.nan, 1.0, np.nan, -np.inf, 1.0], np.float32)
    y, inverse = run_network(compiled(model), {"x": x})
    np.testing.assert_array_equal(y, np.asarray([-np.inf, 1.0, np.nan], np.float32))
    np.testing.assert_array_equal(inverse, [2, 1, 2, 0, 1])


def suppression(
    shape: tuple[int, int, int], held: dict[str, Array], **attributes: Any
) -> ModelProto:
    batch, classes, n = shape
    names = ["boxes", "scores", *held]
    one = node("NonMaxSuppression", names, ["y"], **attributes)
    inputs = {"boxes": (batch, n, 4), "scores": shape}
    return graph_model([one], inputs, ["y"], held, types={"y": LONG})


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 11), (1, 2, 150)])
@pytest.mark.parametrize("limit", [0, 1, 4, 1000])
@pytest.mark.parametrize("centred", [0, 1])
def test_boxes_that_overlap_are_suppressed(
    shape: tuple[int, int, int], limit: int, centred: int, rng: Rng
) -> None:
    held: dict[str, Array] = {
        "most": np.asarray([limit]), "overlap": np.asarray([0.3], np.float32),
        "least": np.asarray([0.25], np.float32),
    }  # fmt: skip
    n = shape[2]
    boxes = rng.random((shape[0], n, 4)).astype(np.float32)
    scores = (rng.integers(0, 40, shape) / 40).astype(np.float32)
    feeds = {"boxes": boxes, "scores": scores}
    for count in (1, 2, 3):
        model = suppression(shape, dict(list(held.items())[:count]), center_point_box=centred)
        assert_same(model, feeds)


@pytest.mark.parametrize("is_constant", [True, False])
def test_one_number_may_be_both_limits(is_constant: bool, rng: Rng) -> None:
    limit = rng.uniform(0.2, 0.4, 1).astype(np.float32)
    held: dict[str, Array] = {"most": np.asarray([5])}
    feeds: dict[str, Array] = {
        "boxes": rng.random((1, 9, 4), np.float32), "scores": rng.random((1, 2, 9), np.float32)
    }  # fmt: skip
    (held if is_constant else feeds)["limit"] = limit
    one = node("NonMaxSuppression", ["boxes", "scores", "most", "limit", "limit"], ["y"])
    shapes = {name: array.shape for name, array in feeds.items()}
    assert_same(graph_model([one], shapes, ["y"], held, types={"y": LONG}), feeds)


def test_only_a_run_may_know_the_limits(rng: Rng) -> None:
    names = ["boxes", "scores", "most", "overlap", "least"]
    one = node("NonMaxSuppression", names, ["y"])
    inputs = {"boxes": (1, 9, 4), "scores": (1, 2, 9), "most": (1,), "overlap": (1,), "least": (1,)}
    model = graph_model([one], inputs, ["y"], types={"y": LONG, "most": LONG})
    boxes = rng.random((1, 9, 4)).astype(np.float32)
    scores = rng.random((1, 2, 9)).astype(np.float32)
    for most in (0, 2, 99):
        feeds = {
            "boxes": boxes, "scores": scores, "most": np.asarray([most]),
            "overlap": np.asarray([0.2], np.float32), "least": np.asarray([0.4], np.float32),
        }  # fmt: skip
        assert_same(model, feeds)


def test_equal_nodes_count_the_same(rng: Rng) -> None:
    """Exporters write them often: of a mask, and of what is there."""
    nodes = [
        node("NonZero", ["x"], ["a"]), node("NonZero", ["x"], ["b"]),
        node("Sub", ["a", "b"], ["y"]),
    ]  # fmt: skip
    model = graph_model(nodes, {"x": (5, 3)}, ["y"], types={"y": LONG})
    assert_same(model, {"x": (rng.random((5, 3)) < 0.5).astype(np.float32)})


def test_two_counts_need_not_be_equal() -> None:
    nodes = [
        node("Compress", ["x", "c"], ["a"], axis=0), node("Compress", ["x", "d"], ["b"], axis=0),
        node("Add", ["a", "b"], ["y"]),
    ]  # fmt: skip
    types = {"c": TensorProto.BOOL, "d": TensorProto.BOOL}
    model = graph_model(nodes, {"x": (5,), "c": (5,), "d": (5,)}, ["y"], types=types)
    with pytest.raises(UnsupportedModel, match="a.count and b.count"):
        load(model)


@pytest.mark.parametrize("operator", ["NonZero", "Unique", "Compress", "NonMaxSuppression"])
def test_counts_of_constants_are_numbers(operator: str, rng: Rng) -> None:
    held: dict[str, Array] = {"x": rng.integers(0, 2, 7)}
    if operator == "Compress":
        held["flags"] = rng.random(5) < 0.5
    if operator == "NonMaxSuppression":
        held = {
            "boxes": rng.random((1, 6, 4), np.float32), "scores": rng.random((1, 2, 6), np.float32),
            "most": np.array([3]), "overlap": np.array([0.5], np.float32),
        }  # fmt: skip
    nodes = [node(operator, list(held), ["y"]), node("Neg", ["z"], ["other"])]
    model = graph_model(nodes, {"z": (3,)}, ["y", "other"], held, types={"y": LONG})
    graph = load(model)
    assert all(isinstance(extent, int) for extent in graph.types[graph.outputs[0].value].shape)
    assert_same(model, {"z": rng.standard_normal(3, np.float32)})


def test_one_element_is_distinct() -> None:
    one = node("Unique", ["x"], ["y", "first", "where", "count"], sorted=0)
    types = dict.fromkeys(["x", "y", "first", "where", "count"], LONG)
    model = graph_model([one], {"x": (1,)}, ["y", "first", "where", "count"], types=types)
    graph = load(model)
    assert_same(model, {"x": np.array([5])})
    for got, want in zip(run_network(partition(graph), {"x": np.array([5])}), (5, 0, 0, 1),
                         strict=True):  # fmt: skip
        assert got.tolist() == [want]
