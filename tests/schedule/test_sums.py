"""Where a sum starts: right around the loops that add to it."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.ir.interpret import run_dag, run_program
from ansorpy.ir.text.printer import text
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests.measure.definitions import matmul


def _tiled(k_inner: int) -> State:
    """Rows, one outer reduce loop, rows, and an inner one: ``SRSR``."""
    state = State.initial(matmul(6, 4, 10))
    state, (i0, i1) = state.split("C", "i", (3,))
    state, (k0, k1) = state.split("C", "k", (k_inner,))
    return state.reorder("C", [i0, k0, i1, k1, state.stage("C").iter("j")])


def test_a_reduce_loop_of_one_iteration_does_not_part_clearing_from_adding() -> None:
    assert text(lower(_tiled(10)).run).splitlines()[1:] == [
        "  for i.0 in 0..2",
        "    for i.1 in 0..3",
        "      for j in 0..4",
        "        C[i.0 * 3 + i.1, j] = 0.0",
        "      for k.1 in 0..10",
        "        for j_1 in 0..4",
        "          C[i.0 * 3 + i.1, j_1] += A[i.0 * 3 + i.1, k.1] * B[k.1, j_1]",
    ]


def test_one_that_repeats_has_all_it_adds_to_cleared_before() -> None:
    lines = text(lower(_tiled(5)).run).splitlines()[1:5]
    assert [line.strip() for line in lines] == [
        "for i.0 in 0..2", "for i.1 in 0..3", "for j in 0..4", "C[i.0 * 3 + i.1, j] = 0.0",
    ]  # fmt: skip


@pytest.mark.parametrize("k_inner", [1, 4, 5, 10])
def test_the_sums_are_the_same(k_inner: int, rng: np.random.Generator) -> None:
    state = _tiled(k_inner)
    a = rng.standard_normal((6, 10), np.float32)
    b = rng.standard_normal((10, 4), np.float32)
    c = np.full((6, 4), np.nan, np.float32)
    run_program(lower(state).run, [a, b, c])
    [want] = run_dag(state.definition, {"A": a, "B": b})
    np.testing.assert_allclose(c, want, rtol=1e-5, atol=1e-5)


def test_a_sum_of_one_term_is_cleared_too(rng: np.random.Generator) -> None:
    state = State.initial(matmul(3, 4, 1))
    a = rng.standard_normal((3, 1), np.float32)
    b = rng.standard_normal((1, 4), np.float32)
    c = np.full((3, 4), np.nan, np.float32)
    run_program(lower(state).run, [a, b, c])
    np.testing.assert_allclose(c, a @ b, rtol=1e-6)
