"""Writes at indices that are constant or data, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from tests.frontend.models import graph_model, node
from tests.frontend.sized import graph_at, sizes_at
from tests.graph.executor import (
    Array,
    assert_same_as_onnxruntime,
    compiled,
    random_feeds,
    run_network,
    run_reference,
)
from tests.peer import peer

Shape = tuple[int, ...]


def scattered(
    op_type: str, data: Shape, indices: Array, updates: Shape, opset: int = 18,
    kind: int = TensorProto.FLOAT, reduction: str = "none", axis: int | None = None,
) -> ModelProto:  # fmt: skip
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    if opset >= 16:
        attributes["reduction"] = reduction
    one = node(op_type, ["x", "at", "u"], ["y"], **attributes)
    types = dict.fromkeys(["x", "u", "y"], kind)
    return graph_model([one], {"x": data, "u": updates}, ["y"], {"at": indices}, opset, types)


def at_random(outer: Shape, count: Shape, rng: np.random.Generator) -> Array:
    """Indices of different places of *outer*, some counted from the end."""
    places = rng.permutation(int(np.prod(outer)))[: int(np.prod(count))]
    found = np.stack(np.unravel_index(places, outer), -1).astype(np.int64)
    from_end = rng.random(found.shape) < 0.3
    counted: Array = found - from_end * np.asarray(outer)
    return counted.reshape(*count, len(outer))


PARTS = [
    ((7,), 1, (3,)), ((1,), 1, (1,)), ((5, 4, 3), 1, (2,)), ((5, 4, 3), 2, (3, 2)),
    ((5, 4, 3), 3, (11,)), ((5, 4), 1, (5,)), ((5, 4, 3), 1, ()), ((6, 2), 1, (0,)),
]  # fmt: skip


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("part", PARTS)
def test_parts_are_written_at_index_tuples(
    part: tuple[Shape, int, Shape], reduction: str, rng: np.random.Generator
) -> None:
    data, depth, count = part
    indices = at_random(data[:depth], count, rng)
    updates = (*count, *data[depth:])
    model = scattered("ScatterND", data, indices, updates, reduction=reduction)
    assert_same_as_onnxruntime(model, rng)


@pytest.mark.parametrize("kind", ["BOOL", "INT64", "INT32", "DOUBLE"])
def test_elements_of_any_type_are_written(kind: str, rng: np.random.Generator) -> None:
    indices = at_random((5,), (3,), rng)
    code = getattr(TensorProto, kind)
    assert_same_as_onnxruntime(
        scattered("ScatterND", (5, 4), indices, (3, 4), kind=code), rng
    )  # fmt: skip


@pytest.mark.parametrize("opset", [10, 11, 13, 18])
@pytest.mark.parametrize(("axis", "updates"), [(0, (2, 4, 3)), (1, (5, 3, 2)), (-1, (4, 4, 1))])
def test_elements_are_written_along_an_axis(
    axis: int, updates: Shape, opset: int, rng: np.random.Generator
) -> None:
    data = (5, 4, 3)
    every = np.argsort(rng.random(data), axis=axis)  # no place twice
    indices = every[tuple(map(slice, updates))].astype(np.int64)
    indices -= (rng.random(updates) < 0.3) * data[axis]
    op_type = "Scatter" if opset < 11 else "ScatterElements"
    assert_same_as_onnxruntime(
        scattered(op_type, data, indices, updates, opset=opset, axis=axis), rng
    )  # fmt: skip


def test_the_last_of_several_updates_remains(rng: np.random.Generator) -> None:
    indices = np.asarray([[1], [3], [1], [-4]])
    network = assert_same_as_onnxruntime(scattered("ScatterND", (5, 3), indices, (4, 3)), rng)
    assert len(network.calls) == 1


def test_an_assigned_slice_is_one_kernel_without_a_gather(rng: np.random.Generator) -> None:
    """``x[:, :] = 2 * x``, its indices made of ranges as exporters do."""
    nodes = [
        node("Add", ["x", "x"], ["twice"]),
        node("Range", ["c0", "c4", "c1"], ["rows"]),
        node("Range", ["c0", "c5", "c1"], ["columns"]),
        node("Unsqueeze", ["rows", "axis"], ["tall"]),
        node("Expand", ["tall", "shape"], ["first"]),
        node("Expand", ["columns", "shape"], ["second"]),
        node("Unsqueeze", ["first", "last"], ["a"]),
        node("Unsqueeze", ["second", "last"], ["b"]),
        node("Concat", ["a", "b"], ["at"], axis=-1),
        node("ScatterND", ["x", "at", "twice"], ["y"]),
    ]
    held: dict[str, Array] = {f"c{n}": np.asarray(n) for n in (0, 1, 4, 5)}
    held |= {"axis": np.asarray([1]), "last": np.asarray([-1]), "shape": np.asarray([4, 5])}
    model = graph_model(nodes, {"x": (4, 5)}, ["y"], held)
    (call,) = assert_same_as_onnxruntime(model, rng).calls
    assert call.name == "add_4x5"


def test_writes_into_constants_fold(rng: np.random.Generator) -> None:
    nodes = [node("ScatterND", ["mask", "at", "ones"], ["m"]), node("Mul", ["x", "m"], ["y"])]
    held: dict[str, Array] = {
        "mask": np.zeros((3, 4), np.float32),
        "at": np.asarray([[0, 1], [2, -1]]),
        "ones": np.ones(2, np.float32),
    }
    model = graph_model(nodes, {"x": (3, 4)}, ["y"], held)
    assert [n.op.label for n in load(model).nodes] == ["mul"]
    assert_same_as_onnxruntime(model, rng)


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
def test_several_updates_of_a_place_are_combined(reduction: str, rng: np.random.Generator) -> None:
    indices = np.asarray([[1], [3], [1], [-4]])
    assert_same_as_onnxruntime(
        scattered("ScatterND", (5, 3), indices, (4, 3), reduction=reduction), rng
    )


def computed(
    op_type: str, data: Shape, indices: Shape, updates: Shape, reduction: str = "none",
    kind: int = TensorProto.FLOAT, axis: int | None = None,
) -> ModelProto:  # fmt: skip
    """A scatter whose indices are an input."""
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    one = node(op_type, ["x", "at", "u"], ["y"], reduction=reduction, **attributes)
    shapes = {"x": data, "at": indices, "u": updates}
    types = {**dict.fromkeys(["x", "u", "y"], kind), "at": TensorProto.INT64}
    return graph_model([one], shapes, ["y"], opset=18, types=types)


def assert_scattered(model: ModelProto, indices: Array, rng: np.random.Generator) -> None:
    network = compiled(model)
    feeds = {**random_feeds(network, rng), "at": indices}
    (got,) = run_network(network, feeds)
    (want,) = peer(model).run(None, feeds)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("part", PARTS[:-1])
def test_index_tuples_may_be_data(
    part: tuple[Shape, int, Shape], reduction: str, rng: np.random.Generator
) -> None:
    data, depth, count = part
    indices = at_random(data[:depth], count, rng)
    if reduction != "none":
        indices = rng.integers(-1, 2, indices.shape) * (np.asarray(data[:depth]) > 1)
    model = computed("ScatterND", data, indices.shape, (*count, *data[depth:]), reduction)
    assert_scattered(model, indices, rng)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize(
    ("axis", "updates"), [(0, (7, 4, 3)), (1, (5, 9, 2)), (-1, (4, 2, 1)), (1, (5, 4, 3))]
)
def test_indices_of_elements_may_be_data(
    axis: int, updates: Shape, reduction: str, rng: np.random.Generator
) -> None:
    """An axis may have more updates than elements, and places several or none."""
    data = (5, 4, 3)
    indices = rng.integers(-data[axis], data[axis], updates)
    if reduction == "none":
        order = np.argsort(rng.random(updates), axis=axis) % data[axis]
        indices = order - data[axis] * (rng.random(updates) < 0.3)
    assert_scattered(
        computed("ScatterElements", data, updates, updates, reduction, axis=axis), indices, rng
    )


@pytest.mark.parametrize("reduction", ["none", "add", "max"])
@pytest.mark.parametrize("kind", ["INT64", "UINT8", "DOUBLE", "FLOAT16"])
def test_data_of_any_type_are_scattered(
    kind: str, reduction: str, rng: np.random.Generator
) -> None:
    """onnxruntime does not combine all of them; onnx's reference does."""
    model = computed("ScatterND", (5, 4), (3, 1), (3, 4), reduction, getattr(TensorProto, kind))
    network = compiled(model)
    feeds = {**random_feeds(network, rng), "at": np.asarray([[1], [-1], [2]])}
    (got,) = run_network(network, feeds)
    (want,) = run_reference(model, feeds)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-3)


def test_of_several_computed_updates_the_last_remains(rng: np.random.Generator) -> None:
    model = computed("ScatterND", (5, 3), (4, 1), (4, 3))
    assert_scattered(model, np.asarray([[1], [3], [1], [-4]]), rng)


def test_sizes_of_scatters_may_be_ranges(rng: np.random.Generator) -> None:
    """``x[:, at] = u`` for any number of rows and of updates."""
    one = node("ScatterElements", ["x", "at", "u"], ["y"], axis=1, reduction="add")
    shapes: dict[str, tuple[int | str, ...]] = {
        "x": ("n", 7), "at": ("n", "k"), "u": ("n", "k"),
    }  # fmt: skip
    model = graph_model([one], shapes, ["y"], opset=18, types={"at": TensorProto.INT64})
    graph = load(model, dims={"n": (1, 5), "k": (1, 9)})
    for n, k in ((1, 1), (5, 2), (3, 9)):
        network = partition(optimize(graph_at(graph, sizes_at(graph, {"n": n, "k": k}))))
        feeds = {
            **random_feeds(network, rng), "at": rng.integers(-7, 7, (n, k)),
        }  # fmt: skip
        (got,) = run_network(network, feeds)
        (want,) = peer(model).run(None, feeds)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("data", "indices", "kind", "reduction", "said"),
    [
        ((5,), [[5]], "FLOAT", "none", "the axis has 5"),
        ((5,), [[1]], "FLOAT", "median", "use one of none, add, max, min, mul"),
        ((5,), [[1]], "BOOL", "add", "booleans can only be replaced"),
    ],
)
def test_what_cannot_be_written_is_refused(
    data: Shape, indices: list[list[int]], kind: str, reduction: str, said: str
) -> None:
    code = getattr(TensorProto, kind)
    model = scattered("ScatterND", data, np.asarray(indices), (1,), kind=code, reduction=reduction)
    with pytest.raises(UnsupportedModel, match=said):
        load(model)


def test_all_operands_may_be_one_tensor(rng: np.random.Generator) -> None:
    one = node("ScatterElements", ["x", "x", "x"], ["y"], reduction="add")
    kinds = dict.fromkeys("xy", TensorProto.INT64)
    model = graph_model([one], {"x": (3, 4)}, ["y"], opset=18, types=kinds)
    indices = rng.integers(-3, 3, (3, 4))
    (got,) = run_network(compiled(model), {"x": indices})
    (want,) = run_reference(model, {"x": indices})
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("reduction", ["add", "min"])
def test_constant_indices_of_a_part_may_be_equal(
    axis: int, reduction: str, rng: np.random.Generator
) -> None:
    """Without other passes, too: an operator on constants alone has the shape of their whole."""
    data, part = (3, 7, 3), (1, 5, 3)
    at = rng.integers(0, 2, part)
    model = scattered("ScatterElements", data, at, part, reduction=reduction, axis=axis)
    feeds = random_feeds(compiled(model), rng)
    (want,) = run_reference(model, feeds)
    for graph in (load(model), optimize(load(model))):
        (got,) = run_network(partition(graph), feeds)
        np.testing.assert_allclose(got, want, rtol=1e-6)
