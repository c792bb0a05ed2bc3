"""Writes at constant indices, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from tests.frontend.models import graph_model, node
from tests.graph.executor import Array, assert_same_as_onnxruntime

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


@pytest.mark.parametrize(
    ("indices", "reduction", "said"),
    [([[1], [-4]], "add", "write to each position"), ([[1], [5]], "none", "the axis has 5")],
)
def test_what_cannot_be_written_is_refused(
    indices: list[list[int]], reduction: str, said: str
) -> None:
    model = scattered("ScatterND", (5, 3), np.asarray(indices), (2, 3), reduction=reduction)
    with pytest.raises(UnsupportedModel, match=said):
        load(model)


def test_indices_computed_at_run_time_are_refused() -> None:
    one = node("ScatterND", ["x", "at", "u"], ["y"])
    shapes = {"x": (5, 3), "at": (2, 1), "u": (2, 3)}
    with pytest.raises(UnsupportedModel, match="ScatterND .* indices"):
        load(graph_model([one], shapes, ["y"], types={"at": TensorProto.INT64}))
