"""Formulas in place of routines compute the same."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.graph import partition
from ansorpy.graph.ir import Graph, GraphBuilder, Output
from ansorpy.graph.ops import Computed, Cumulative, TensorType
from ansorpy.graph.passes.without_routines import without_routines
from ansorpy.ir.dtypes import DType, as_dtype
from ansorpy.ir.routines.base import Routine
from ansorpy.ir.routines.prefix import Prefixes
from ansorpy.ir.routines.top import TopPlaces
from tests.graph.executor import run_network

Array = np.ndarray


def graph(routine: Routine, x: Array, shape: tuple[int, ...], dtype: DType) -> Graph:
    builder = GraphBuilder()
    given = builder.add_input("x", TensorType(x.shape, as_dtype(x.dtype)))
    made = builder.emit(Computed(routine, shape, dtype), [given], "y")
    return builder.finish([Output("y", made)])


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize(("n", "k"), [(2, 1), (7, 7), (37, 5)])
@pytest.mark.parametrize("kind", ["float32", "int64"])
def test_ranks_of_short_rows(
    largest: bool, n: int, k: int, kind: str, rng: np.random.Generator
) -> None:
    x = rng.integers(-4, 5, (3, n)).astype(kind)
    if kind == "float32":
        x[x == 4] = np.nan
    before = graph(TopPlaces(largest), x, (3, k), DType.INT64)
    after = without_routines(before)
    assert not any(isinstance(node.op, Computed) for node in after.nodes)
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


def test_long_rows_stay() -> None:
    before = graph(TopPlaces(True), np.zeros((1, 1025), np.float32), (1, 2), DType.INT64)
    assert without_routines(before).nodes == before.nodes
