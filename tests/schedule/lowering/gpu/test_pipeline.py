"""Tiles copied ahead of their use, padded tiles, and loops split by a chosen number."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from ansorpy.errors import LoweringError, ScheduleError
from ansorpy.ir.builders import all_of, maximum, select
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.extents import dim
from ansorpy.ir.interpret import run_program
from ansorpy.ir.loops import (
    Alloc,
    AsyncCopy,
    Barrier,
    For,
    ForKind,
    Scope,
    Stmt,
    Store,
    Wait,
    walk_stmts,
)
from ansorpy.ir.rewrite.sizes import program_at
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.measure.proofs.handlers import proof_of
from ansorpy.schedule.decisions import OneOf, factorizations
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_from_json, steps_to_json
from tests import workloads
from tests.faults import Less
from tests.schedule.lowering.gpu.test_program import of_kind, run, tiled

FACTORS = (2, 3, 2, 2)


def ahead(tensors: list[Tensor], depth: int, pad: int = 0, reduce: int = 3) -> State:
    state = tiled(tensors, FACTORS, reduce).pipeline("C.local", "k.0", depth)
    return state.pad("A.shared", pad).pad("B.shared", pad)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("n, m, k", [(24, 24, 12), (23, 13, 7), (5, 12, 2), (1, 1, 10)])
def test_copies_ahead_compute_the_same(n: int, m: int, k: int, depth: int) -> None:
    run(ahead(workloads.matmul(n, m, k), depth, pad=depth % 3))


def test_a_tile_has_an_instance_for_each_stage() -> None:
    program = lower(ahead(workloads.matmul(24, 24, 12), 3, pad=4)).run
    shared = [s.buffer for s in walk_stmts(program.body) if isinstance(s, Alloc)]
    found = {b.name: (b.shape, b.strides) for b in shared if b.scope is Scope.SHARED}
    assert found == {
        "A.shared": ((3, 12, 3), (84, 7, 1)),
        "B.shared": ((3, 3, 12), (48, 16, 1)),
    }
    assert len(of_kind(program.body, AsyncCopy)) == 4  # of A and B, before the loop and in it
    assert len(of_kind(program.body, Barrier)) == 2
    assert [s.pending for s in walk_stmts(program.body) if isinstance(s, Wait)] == [1]


def test_tiles_of_a_sum_of_any_length_are_copied_ahead(rng: np.random.Generator) -> None:
    n, k = dim("n", 1, 60), dim("k", 0, 40)
    state = ahead(workloads.matmul(n, 24, k), 3, pad=4)
    assert proof_of(lower(state)).is_decided
    program = lower(state).run
    shared = [s.buffer for s in walk_stmts(program.body) if isinstance(s, Alloc)]
    assert [b.shape for b in shared if b.name == "A.shared"] == [(3, 12, 3)]
    for rows, length in ((1, 0), (5, 1), (12, 3), (13, 4), (60, 40), (7, 11)):
        a, b = (rng.random(s, np.float32) for s in ((rows, length), (length, 24)))
        out = np.full((rows, 24), np.nan, np.float32)
        sizes = dict(zip(state.definition.dims, (rows, length), strict=True))
        run_program(program_at(program, sizes), [a, b, out])
        np.testing.assert_allclose(out, a @ b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("missing, found", [
    ((Barrier, 2), "two threads access"), ((Wait, 1), "read before waiting for the copy to it"),
])  # fmt: skip
def test_a_missing_barrier_and_an_early_wait_are_found(
    missing: tuple[type[Stmt], int], found: str
) -> None:
    program = lower(ahead(workloads.matmul(24, 24, 12), 3)).run
    wrong = program.with_body(Less(*missing).stmt(program.body))
    arrays = [np.ones(p.buffer.shape, np.float32) for p in program.params]
    run_program(program, arrays)
    with pytest.raises(LoweringError, match=found):
        run_program(wrong, arrays)


def test_what_is_computed_on_the_way_is_stored_not_copied() -> None:
    a, b, _ = workloads.matmul(12, 12, 9)
    relu = compute((12, 9), lambda i, j: maximum(a[i, j], 0.0), name="relu")
    k = reduce_axis(9, name="k")
    out = compute((12, 12), lambda i, j: sum_over(relu[i, k] * b[k, j], axis=k), name="C")
    state, local = State.initial([a, b, out]).cache_write("C", "local")
    state, (block, thread) = state.split("C", "i", (6,))
    state = state.bind("C", block, "blockIdx.x").bind("C", thread, "threadIdx.x")
    state = state.compute_at(local, "C", thread)
    state, (outer, inner) = state.split(local, "k", (3,))
    state = state.reorder(local, [outer, inner, "i", "j"])
    for operand in ("relu", "B"):
        state, cached = state.cache_read(operand, "shared", [local])
        state = state.compute_at(cached, local, outer)
        state, (_, mine) = state.split(cached, state.stage(cached).iters[-1], (6,))
        state = state.bind(cached, mine, "threadIdx.x")
    state = state.compute_inline("relu").pipeline(local, outer, 2)
    program = lower(state).run
    filled = [s for s in walk_stmts(program.body) if isinstance(s, Store | AsyncCopy)]
    assert {s.buffer.name for s in filled if isinstance(s, AsyncCopy)} == {"B.shared"}
    assert "relu.shared" in {s.buffer.name for s in filled if isinstance(s, Store)}
    run(state)


def test_padding_of_a_tile_that_reaches_beyond_its_tensor_is_copied() -> None:
    x, w = placeholder((20,), name="X"), placeholder((4,), name="W")
    padded = compute((24,), lambda i: select(all_of(i >= 2, i < 22), x[i - 2], 0.0), name="P")
    r = reduce_axis(4, name="r")
    out = compute((21,), lambda i: sum_over(padded[i + r] * w[r], axis=r), name="C")
    state, local = State.initial([x, w, out]).cache_write("C", "local")
    state, (block, thread) = state.split("C", "i", (8,), tail="cover")
    state = state.bind("C", block, "blockIdx.x").bind("C", thread, "threadIdx.x")
    state = state.compute_at(local, "C", thread)
    state, (outer, inner) = state.split(local, "r", (2,))
    state = state.reorder(local, [outer, inner, "i"])
    state, cached = state.cache_read("P", "shared", [local])
    state = state.compute_inline("P").compute_at(cached, local, outer)
    state, (_, mine) = state.split(cached, "i0", (8,))
    state = state.bind(cached, mine, "threadIdx.x").pipeline(local, outer, 2)
    body = lower(state).run.body
    assert [s.buffer.name for s in walk_stmts(body) if isinstance(s, AsyncCopy)] == ["P.shared"] * 2
    run(state)


def test_a_pipeline_is_of_a_reduce_loop_and_a_pad_of_a_shared_tile() -> None:
    state = tiled(workloads.matmul(24, 24, 12), FACTORS)
    with pytest.raises(ScheduleError, match="only a reduce loop"):
        state.pipeline("C.local", "i", 2)
    with pytest.raises(ScheduleError, match="only tiles in shared memory"):
        state.pad("C.local", 1)
    with pytest.raises(ScheduleError, match="0 is too small; the least number allowed is 1"):
        state.split("C.local", "i", (0,))


@pytest.mark.parametrize("tail", ["guard", "whole"])
@pytest.mark.parametrize("n", [1, 5, 8, 19])
def test_threads_of_a_shorter_loop_are_as_many_where_it_is_split_whole(
    n: int, tail: Literal["guard", "whole"]
) -> None:
    a = placeholder((n,), name="A")
    state = State.initial([a, compute((n,), lambda i: a[i] + 1.0, name="B")])
    state, (_, thread) = state.split("B", "i", (8,), tail=tail)
    state = state.bind("B", thread, "threadIdx.x")
    again = State.replay(state.definition, steps_from_json(steps_to_json(state.history)))
    assert again.history == state.history
    assert f"split('B', 'i', (8,){', tail=' if tail == 'whole' else ''}" in str(state.history)
    loops = [s for s in walk_stmts(lower(state).run.body) if isinstance(s, For)]
    assert [s.extent for s in loops if s.kind is ForKind.THREAD_X] == [
        8 if tail == "whole" else min(n, 8)
    ]
    run(state)


def test_choices_are_columns_and_records_replay() -> None:
    start = tiled(workloads.matmul(24, 24, 12), FACTORS).pipeline("C.local", "k.0", OneOf((1, 3)))
    open_state = start.pad("A.shared", OneOf((0, 4)))
    open_state, _ = open_state.split("B.shared", "i0@i1@.0", (OneOf((2, 5)),))
    space = Space(open_state)
    assert space.columns == ("C.local.pipeline", "A.shared.pad", "B.shared.i0@i1@.0/1")
    bound = space.resolve([3, 4, 5])
    again = State.replay(bound.definition, steps_from_json(steps_to_json(bound.history)))
    assert str(again.history) == str(bound.history)
    assert again.text() == bound.text()
    run(again)


def test_tiles_that_cover_an_axis_waste_little_of_it() -> None:
    tiles = set(factorizations(509, 1, 512, "cover")[:, 0].tolist())
    assert {1, 32, 64, 128, 512 // 4} <= tiles
    assert all(-(-509 // tile) * tile <= 509 * 9 / 8 for tile in tiles)
    assert max(factorizations(4096, 1, 4096, "cover")[:, 0]) == 512
    state = tiled(workloads.matmul(24, 24, 12), FACTORS)
    state, _ = State.initial(state.definition).split("C", "k", (5,), tail="cover")
    run(state)
