"""Formulas in place of routines compute the same."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from ansorpy.graph.ir import Graph, GraphBuilder, Output
from ansorpy.graph.ops import Computed, Cumulative, TensorType
from ansorpy.graph.passes.without_routines import without_routines
from ansorpy.ir.dtypes import DType, as_dtype
from ansorpy.ir.routines.base import Routine
from ansorpy.ir.routines.places import Inverse
from ansorpy.ir.routines.prefix import Prefixes
from ansorpy.ir.routines.top import TopPlaces
from tests.frontend.models import graph_model, node
from tests.graph.executor import random_feeds, run_network

Array = np.ndarray
Shape = tuple[int, ...]


def graph(routine: Routine, x: Array, shape: tuple[int, ...], dtype: DType) -> Graph:
    builder = GraphBuilder()
    given = builder.add_input("x", TensorType(x.shape, as_dtype(x.dtype)))
    made = builder.emit(Computed(routine, shape, dtype), [given], "y")
    return builder.finish([Output("y", made)])


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 1), (7, 7), (37, 5)])
@pytest.mark.parametrize("kind", ["float32", "int64"])
def test_ranks_of_short_rows(
    largest: bool, n: int, k: int, kind: str, rng: np.random.Generator
) -> None:
    x = rng.integers(-4, 5, (3, n)).astype(kind)
    if kind == "float32":
        x[x == 4] = np.nan
    before = graph(TopPlaces(largest), x, (3, k), DType.INT64)
    after = without_routines(before)
    assert not any(isinstance(made.op, Computed) for made in after.nodes)
    want, got = (run_network(partition(g), {"x": x})[0] for g in (before, after))
    np.testing.assert_array_equal(got, want)


def test_running_sums(rng: np.random.Generator) -> None:
    x = rng.integers(-4, 5, (2, 7, 3))
    for settings in ((False, True, False), (True, False, True)):
        before = graph(Prefixes(*settings), x, x.shape, DType.INT64)
        after = without_routines(before)
        assert isinstance(after.nodes[0].op, Cumulative)
        want, got = (run_network(partition(g), {"x": x})[0] for g in (before, after))
        np.testing.assert_array_equal(got, want)


def test_where_each_place_stands_in_an_order(rng: np.random.Generator) -> None:
    x = rng.permutation(9)
    after = without_routines(graph(Inverse(), x, x.shape, DType.INT64))
    assert not any(isinstance(made.op, Computed) for made in after.nodes)
    [got] = run_network(partition(after), {"x": x})
    np.testing.assert_array_equal(got, np.argsort(x))


def test_long_rows_stay() -> None:
    before = graph(TopPlaces(True), np.zeros((1, 1025), np.float32), (1, 2), DType.INT64)
    assert without_routines(before).nodes == before.nodes


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize(
    ("op_type", "data", "indices", "updates"),
    [
        ("ScatterND", (7, 4), (9, 1), (9, 4)),
        ("ScatterND", (3, 4, 2), (5, 2), (5, 2)),
        ("ScatterElements", (7, 3), (11, 3), (11, 3)),
        ("ScatterElements", (5, 4), (3, 2), (3, 2)),
    ],
)
def test_a_scatter_is_a_formula(
    op_type: str, data: Shape, indices: Shape, updates: Shape, reduction: str,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    one = node(op_type, ["x", "at", "u"], ["y"], reduction=reduction)
    shapes = {"x": data, "at": indices, "u": updates}
    graph = load(graph_model([one], shapes, ["y"], opset=18, types={"at": TensorProto.INT64}))
    compared = without_routines(graph)
    assert not any(isinstance(made.op, Computed) for made in compared.nodes)
    network = partition(optimize(graph))
    feeds = {**random_feeds(network, rng), "at": rng.integers(-2, 3, indices)}
    [want] = run_network(network, feeds)
    [got] = run_network(partition(optimize(compared)), feeds)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_scatter_to_many_places_stays() -> None:
    one = node("ScatterND", ["x", "at", "u"], ["y"])
    shapes: dict[str, Shape] = {"x": (1 << 20,), "at": (1 << 14, 1), "u": (1 << 14,)}
    graph = load(graph_model([one], shapes, ["y"], types={"at": TensorProto.INT64}))
    assert any(isinstance(made.op, Computed) for made in without_routines(graph).nodes)
