"""Shifted tails: tiles that need not divide, with no guard and no second body."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.errors import ScheduleError
from ansorpy.ir import builders as b
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.loops import For, If, Let, walk_stmts
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.schedule.decisions import OneOf, factorizations, tiles_of
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests.run_native import run_native


def scaled(n: int = 13, m: int = 37) -> list[Tensor]:
    x = placeholder((n, m), name="X")
    return [x, compute((n, m), lambda i, j: x[i, j] * 2.0, name="Y")]


def matmul(n: int = 13, m: int = 37, k: int = 5) -> list[Tensor]:
    a, w = placeholder((n, k), name="A"), placeholder((k, m), name="W", constant=True)
    r = reduce_axis(k, name="k")
    return [a, w, compute((n, m), lambda i, j: b.sum(a[i, r] * w[r, j], axis=r), name="C")]


def check(state: State) -> None:
    rng = np.random.default_rng(0)
    data = {a.name: rng.standard_normal(a.shape).astype(np.float32) for a in state.definition.args}
    [want] = run_dag(state.definition, data)
    [got] = run_native(lower(state), data)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_the_last_tile_starts_early_enough_to_fit() -> None:
    state, (outer, _) = State.initial(scaled()).split("Y", "j", (16,), tail="shift")
    body = lower(state).run.body
    assert [s.extent for s in walk_stmts(body) if isinstance(s, For)] == [13, 3, 16]
    assert not [s for s in walk_stmts(body) if isinstance(s, If)]
    [start] = [s for s in walk_stmts(body) if isinstance(s, Let)]
    assert start.var.name == "j.start"
    check(state.vectorize("Y", ["j.1"]))


def test_parallel_tiles_stay_one_collapsed_nest() -> None:
    state, i = State.initial(scaled()).split("Y", "i", (4,), tail="shift")
    state, j = state.split("Y", "j", (16,), tail="shift")
    state = state.reorder("Y", [i[0], j[0], i[1], j[1]]).parallel("Y", [i[0], j[0]])
    outer = lower(state).run.body
    assert isinstance(outer, For) and isinstance(outer.body, For)
    assert isinstance(outer.body.body, Let)
    check(state)


def test_a_tile_starts_outside_of_the_parallel_loops_in_it() -> None:
    x, y = scaled()
    state = State.initial([x, compute((13, 37), lambda i, j: y[i, j] + 1.0, name="D")])
    state, (outer, inner) = state.split("D", "i", (4,), tail="shift")
    state = state.reorder("D", [outer, "j", inner]).parallel("D", ["j"])
    check(state.compute_at("Y", "D", outer))


def test_a_cached_sum_takes_shifted_tiles_and_a_packed_constant() -> None:
    state, cached = State.initial(matmul()).cache_write("C", "local")
    state, i = state.split("C", "i", (4,), tail="shift")
    state, j = state.split("C", "j", (16,), tail="shift")
    state = state.reorder("C", [i[0], j[0], i[1], j[1]]).parallel("C", [i[0], j[0]])
    state = state.compute_at(cached, "C", j[0]).reorder(cached, ["k", "i", "j"])
    state = state.vectorize(cached, ["j"]).unroll(cached, "i").pack(cached, "W")
    check(state)


def test_a_sum_in_shared_memory_is_not_repeated() -> None:
    state, (outer, _) = State.initial(matmul()).split("C", "i", (4,), tail="shift")
    check(state)  # one thread: each tile starts from zero again
    with pytest.raises(ScheduleError, match="a shifted tail repeats part of a sum"):
        lower(state.parallel("C", [outer]))
    with pytest.raises(ScheduleError, match="a shifted tail repeats part of a sum"):
        lower(state.reorder("C", ["k", "i.0", "i.1", "j"]))


def test_a_vector_has_lanes_of_one_tile_of_a_sum() -> None:
    """All lanes begin their sums before any of them adds to an element that tiles share."""
    state, (outer, inner) = State.initial(matmul()).split("C", "i", (4,), tail="shift")
    within = state.reorder("C", ["j", "k", outer, inner]).vectorize("C", [inner])
    check(within.reorder("C", [outer, inner, "j", "k"]))
    across = state.reorder("C", ["j", "k", inner, outer]).vectorize("C", [outer])
    with pytest.raises(ScheduleError, match="another thread, lane or iteration adds to"):
        lower(across.reorder("C", [outer, "j", "k", inner]))


@pytest.mark.parametrize("loop", ["k", "j.1"])
def test_only_space_axes_themselves_are_shifted(loop: str) -> None:
    state, _ = State.initial(matmul()).split("C", "j", (16,))
    with pytest.raises(ScheduleError, match="only an original space axis"):
        state.split("C", loop, (3,), tail="shift")


def test_a_tile_larger_than_the_axis_is_guarded() -> None:
    state, _ = State.initial(scaled()).split("Y", "i", (3, 4, 5), tail="shift")
    check(state)


def test_the_history_repeats_the_tail() -> None:
    state, _ = State.initial(scaled()).split("Y", "j", (None, 8), tail="shift")
    assert "tail='shift'" in str(state.history)
    scope = {"state": State.initial(scaled()), "OneOf": OneOf}
    exec(str(state.history), scope)  # noqa: S102 - our own printed steps
    assert str(scope["state"]) == str(state)


@pytest.mark.parametrize("extent", [1, 13, 37, 55, 71, 109, 224, 1000])
def test_ragged_tiles_waste_little_and_contain_all_divisors(extent: int) -> None:
    tiles = tiles_of(extent, "shift")
    for tile in tiles:
        assert 1 <= tile <= extent
        whole_vectors = tile % 16 == 0 and extent > 32
        most = max(extent * 9 / 8, -(-extent // 16) * 16 if whole_vectors else 0)
        assert -(-extent // tile) * tile <= most
    assert {d for d in range(1, extent + 1) if extent % d == 0} <= set(tiles)
    assert extent <= 32 or 16 in tiles, "no more vectors than the whole axis takes"
    rows = factorizations(extent, 3, 64, "shift")
    assert set(np.unique(rows.prod(axis=1))) <= set(tiles)
    assert len(np.unique(rows, axis=0)) == len(rows)
