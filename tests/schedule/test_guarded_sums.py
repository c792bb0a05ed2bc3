"""Sums that skip what a condition excludes: branches where they are cheap, else arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.ir.interpret import run_dag
from ansorpy.ir.loops import For, If, Stmt, Store, walk_stmts
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests import workloads
from tests.run_native import run_native


def definition() -> State:
    return State.initial(workloads.transposed_conv1d(5, 6, 8, 3))


def conditions_around_sums(stmt: Stmt) -> list[str]:
    """The loops inside each condition that guards a sum."""
    return [
        " ".join(s.var.name for s in walk_stmts(found.then) if isinstance(s, For))
        for found in walk_stmts(stmt)
        if isinstance(found, If)
        and any(isinstance(s, Store) and s.reduce is not None for s in walk_stmts(found.then))
    ]


def test_the_condition_is_asked_outside_the_loops_that_do_not_change_it() -> None:
    state = definition()
    assert conditions_around_sums(lower(state).run.body) == ["c"]
    state = state.reorder("Y", ["i", "a", "t", "c", "o"]).vectorize("Y", ["o"])
    assert conditions_around_sums(lower(state).run.body) == ["c o_1"]


@pytest.mark.parametrize("inner", ["unroll", "vectorize"])
def test_rows_of_a_tile_that_differ_choose_inside_the_arithmetic(inner: str) -> None:
    state = definition().reorder("Y", ["i", "t", "c", "o", "a"])
    state = state.unroll("Y", "a") if inner == "unroll" else state.vectorize("Y", ["a"])
    assert conditions_around_sums(lower(state).run.body) == []


@pytest.mark.parametrize("order", ["i a t c o", "a t i o c", "t c i o a"])
def test_the_result_is_that_of_the_definition(order: str) -> None:
    state = definition().reorder("Y", order.split()).unroll("Y", "a")
    rng = np.random.default_rng(1)
    data = {t.name: rng.standard_normal(t.shape).astype(np.float32) for t in state.definition.args}
    [got], [want] = run_native(lower(state), data), run_dag(state.definition, data)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
