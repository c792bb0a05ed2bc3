"""Tails with a body of their own: tiles of n and n - 1, and whole tiles with a smaller last one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import integers, sampled_from

from ansorpy.errors import ScheduleError
from ansorpy.ir.expr import Const, Expr, as_expr
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.loops import For, ForKind, If, Stmt, walk_stmts
from ansorpy.ir.rewrite.simplify import simplify
from ansorpy.ir.tensor import Tensor, compute, placeholder
from ansorpy.schedule.bounds.axes import iter_extents
from ansorpy.schedule.decisions import factorizations, tiles_of
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.lowering.tails import second_body
from ansorpy.schedule.stage import Tail
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_from_json, steps_to_json
from tests.budget import examples
from tests.run_native import run_native
from tests.schedule.test_shift import check, matmul, scaled


def extents(stmt: Stmt) -> list[int]:
    return [s.extent for s in walk_stmts(stmt) if isinstance(s, For)]


def tiled(
    n: int, m: int, rows: int, cols: int, tails: tuple[Tail, Tail], parallel: int = 2
) -> State:
    """A product whose sums are computed for each tile of the result, its weights packed."""
    state, cached = State.initial(matmul(n, m)).cache_write("C", "local")
    state, i = state.split("C", "i", (rows,), tail=tails[0])
    state, j = state.split("C", "j", (cols,), tail=tails[1])
    state = state.reorder("C", [i[0], j[0], i[1], j[1]]).parallel("C", [i[0], j[0]], count=parallel)
    state = state.compute_at(cached, "C", j[0]).reorder(cached, ["k", "i", "j"])
    return state.vectorize(cached, ["j"]).unroll(cached, "i").pack(cached, "W")


@pytest.mark.parametrize(
    ("tail", "tile", "sizes"), [("even", 7, (7, 6)), ("peel", 8, (8, 5)), ("peel", 12, (12, 1))]
)
def test_thirteen_rows_are_two_tiles_without_guards(
    tail: Tail, tile: int, sizes: tuple[int, int]
) -> None:
    state, (outer, _) = State.initial(scaled()).split("Y", "i", (tile,), tail=tail)
    body = lower(state.parallel("Y", [outer])).run.body
    [choice] = [s for s in walk_stmts(body) if isinstance(s, If)]
    assert choice.other is not None
    full, rest = ([size, 37] if size > 1 else [37] for size in sizes)
    assert extents(choice.then) == full
    assert extents(choice.other) == rest
    check(state.vectorize("Y", ["j"]).parallel("Y", [outer]))


@pytest.mark.parametrize("tail", ["even", "peel"])
@pytest.mark.parametrize("extent", [2, 13, 37, 71])
def test_tiles_share_no_element_and_leave_none_out(tail: Tail, extent: int) -> None:
    for tile in tiles_of(extent, tail):
        stage = State.initial(scaled(extent)).split("Y", "i", (tile,), tail=tail)[0].stage("Y")
        sizes = iter_extents(stage)
        body = second_body(stage, sizes, dict.fromkeys(sizes, ForKind.PARALLEL) | SERIAL)
        if body is None:
            assert extent % tile == 0
            continue
        ends = [0]
        for n in range(body.count):
            assert constant(body.start(as_expr(n))) == ends[-1]
            ends.append(ends[-1] + (body.tile if n < body.first else body.size))
        assert ends[-1] == extent
        assert body.ranges(second=True)[1][1] == ends[-2]


SERIAL = {"i.1": ForKind.SERIAL, "j": ForKind.SERIAL}


def constant(expr: Expr) -> int:
    value = simplify(expr)
    assert isinstance(value, Const)
    return int(value.value)


@pytest.mark.parametrize("tails", [("even", "shift"), ("peel", "shift"), ("shift", "peel")])
def test_a_cached_sum_and_a_packed_constant_take_both_bodies(tails: tuple[Tail, Tail]) -> None:
    state = tiled(13, 37, 7, 16, tails)
    lowered = lower(state)
    products = [s for s in walk_stmts(lowered.run.body) if isinstance(s, For)]
    assert sum(s.kind is ForKind.UNROLLED and s.extent > 1 for s in products) == 4  # with zeroing
    check(state)


@pytest.mark.parametrize("parallel", [0, 1])
def test_both_bodies_read_one_packed_constant_in_loops_of_their_own(parallel: int) -> None:
    check(tiled(13, 37, 7, 16, ("even", "shift"), parallel))


def test_panels_of_a_packed_constant_are_whole() -> None:
    bind = lower(tiled(13, 37, 4, 19, ("shift", "even"))).bind
    assert bind is not None
    assert bind.params[-1].buffer.shape == (2, 5, 19)
    check(tiled(13, 37, 4, 19, ("shift", "even")))


@examples(25)
@given(
    n=integers(1, 30), m=integers(1, 50), tail=sampled_from(("even", "peel")),
    vector=integers(0, 1), rows=integers(1, 9), cols=integers(1, 40),
)  # fmt: skip
def test_products_with_two_bodies_compute_their_definition(
    n: int, m: int, tail: Tail, vector: int, rows: int, cols: int
) -> None:
    tails: tuple[Tail, Tail] = ("shift", tail) if vector else (tail, "shift")
    rows, cols = min(n, rows), min(m, cols)
    if tail == "even":
        rows = -(-n // -(-n // rows))
        cols = -(-m // -(-m // cols))
    check(tiled(n, m, rows, cols, tails))


def test_a_sum_itself_may_have_two_bodies_in_parallel() -> None:
    """No tile repeats another's part, so threads may add to the result in place."""
    state, (outer, _) = State.initial(matmul()).split("C", "i", (7,), tail="even")
    check(state.parallel("C", [outer]))
    check(state.reorder("C", ["k", "i.0", "i.1", "j"]))


def test_one_axis_a_stage_has_two_bodies() -> None:
    state, _ = State.initial(scaled()).split("Y", "i", (7,), tail="even")
    with pytest.raises(ScheduleError, match='tiles of "i" have two bodies'):
        state.split("Y", "j", (8,), tail="peel")


def test_a_split_that_follows_another_has_its_tail() -> None:
    a, w, c = matmul(13, 13)
    d = compute((13, 13), lambda i, j: c[i, j] * 2.0, name="D")
    state, source = State.initial([a, w, d]).split("D", "i", (8,), tail="peel")[0], ("D", "i")
    state, _ = state.follow_split("C", "i", source, 1)
    with pytest.raises(ScheduleError, match='tiles of "i" have two bodies'):
        state.follow_split("C", "j", source, 1)
    with pytest.raises(ScheduleError, match="only an original space axis"):
        state.follow_split("C", "k", source, 1)


def test_the_rows_of_a_tile_may_run_in_parallel() -> None:
    state, (_, inner) = State.initial(scaled()).split("Y", "i", (7,), tail="even")
    check(state.parallel("Y", [inner]))


def test_a_copy_for_all_tiles_starts_where_the_first_one_does() -> None:
    a, w, c = matmul(26, 37)
    d = compute((26, 37), lambda i, j: c[i, j] * 2.0, name="D")
    state, (block, _) = State.initial([a, w, d]).split("D", "i", (13,))
    state, _ = state.compute_at("C", "D", block).split("C", "i", (7,), tail="even")
    state, copy = state.cache_read("A", "local", ["C"])
    check(state.reorder("C", ["k", "i.0", "i.1", "j"]).compute_at(copy, "C", "k"))


def test_so_does_one_in_either_body() -> None:
    x, y = scaled(26, 37)
    c = compute((26, 37), lambda i, j: y[i, j] + 1.0, name="C")
    d = compute((26, 37), lambda i, j: c[i, j] * 2.0, name="D")
    state, (block, _) = State.initial([x, d]).split("D", "i", (13,))
    state, _ = state.compute_at("C", "D", block).split("C", "i", (7,), tail="shift")
    state, (outer, inner) = state.split("C", "j", (19,), tail="even")
    state = state.reorder("C", [outer, "i.0", "i.1", inner])
    check(state.compute_at("Y", "C", outer))


def test_two_bodies_inside_two_bodies_are_refused() -> None:
    state, cached = State.initial(matmul()).cache_write("C", "local")
    state, (outer, _) = state.split("C", "i", (8,), tail="peel")
    state, _ = state.split(cached, "j", (8,), tail="peel")
    with pytest.raises(ScheduleError, match="inside tiles that already have two bodies"):
        lower(state.compute_at(cached, "C", outer))


def test_even_tiles_must_cover_the_axis() -> None:
    state, _ = State.initial(scaled()).split("Y", "i", (9,), tail="even")
    with pytest.raises(ScheduleError, match="2 tiles of 9 and 8 elements exceed the 13") as error:
        lower(state)
    assert "use tiles of 7" in str(error.value)


def test_the_loops_of_a_tile_must_make_the_smaller_one() -> None:
    state, _ = State.initial(scaled()).split("Y", "i", (3, 2), tail="peel")
    check(State.initial(scaled(16)).split("Y", "i", (3, 2), tail="peel")[0])
    check(state)  # a last tile of 1
    state, _ = State.initial(scaled()).split("Y", "i", (4, 2), tail="peel")
    with pytest.raises(ScheduleError, match="cannot make the smaller tile of 5"):
        lower(state)


def test_the_loop_over_tiles_stays_around_them() -> None:
    state, i = State.initial(scaled()).split("Y", "i", (8,), tail="peel")
    with pytest.raises(ScheduleError, match='need the loop "i.0" around'):
        lower(state.reorder("Y", [i[1], i[0]]))
    with pytest.raises(ScheduleError, match='need the loop "i.0" around'):
        lower(state.fuse("Y", [i[1], "j"])[0])
    with pytest.raises(ScheduleError, match='need the loop "i.0" around'):
        lower(state.parallel("Y", i))


@pytest.mark.parametrize("tail", ["even", "peel"])
def test_the_history_and_records_repeat_the_tail(tail: Tail) -> None:
    state, _ = State.initial(scaled()).split("Y", "j", (None,), tail=tail)
    assert f"tail='{tail}'" in str(state.history)
    assert f"for j.0 in 0..?  # tail: {tail}" in state.text()
    again = State.replay(state.definition, steps_from_json(steps_to_json(state.history)))
    assert str(again.history) == str(state.history)


@pytest.mark.parametrize("extent", [1, 2, 13, 37, 71, 127])
def test_open_tiles_suit_their_tail(extent: int) -> None:
    for tile in tiles_of(extent, "even"):
        count = -(-extent // tile)
        assert extent % tile == 0 or count * (tile - 1) < extent < count * tile
    assert set(range(1, min(extent, 32) + 1)) <= set(tiles_of(extent, "peel"))
    for tail in ("even", "peel"):
        rows = factorizations(extent, 2, 64, tail)
        assert set(np.unique(rows.prod(axis=1))) <= set(tiles_of(extent, tail))


def test_values_are_those_of_the_definition_without_a_reduction() -> None:
    tensors: list[Tensor] = scaled(29, 3)
    state, _ = State.initial(tensors).split("Y", "i", (8,), tail="peel")
    data = {"X": np.random.default_rng(1).standard_normal((29, 3)).astype(np.float32)}
    [want] = run_dag(state.definition, data)
    np.testing.assert_array_equal(run_native(lower(state), data)[0], want)


def test_a_guard_that_all_lanes_share_leaves_them_a_vector() -> None:
    a = placeholder((6, 24), name="A")
    b = compute((6, 24), lambda i, j: a[i, j] * 2.0, name="B")
    for tile, kept in ((16, True), (5, False)):
        state, (_, inner) = State.initial([a, b]).split("B", "j", (tile,))
        state, (_, lanes) = state.split("B", inner, (4,))
        body = lower(state.vectorize("B", [lanes])).run.body
        kinds = [s.kind for s in walk_stmts(body) if isinstance(s, For)]
        assert (ForKind.VECTORIZED in kinds) is kept
        assert any(isinstance(s, If) for s in walk_stmts(body))
