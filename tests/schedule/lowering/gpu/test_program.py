"""GPU blocks: shared tiles hold what all threads read, barriers order them, virtual threads."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.ir.builders import exp
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import ReduceKind, Var, const
from ansorpy.ir.interpret import run_dag, run_program
from ansorpy.ir.loops import (
    Alloc,
    Barrier,
    For,
    ForKind,
    If,
    Program,
    Role,
    Scope,
    Seq,
    Stmt,
    Store,
    walk_stmts,
)
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.schedule.lowering.gpu.program import launched, synchronised, without_vthreads
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests import workloads
from tests.ir.interpret.nests import buffer, load, loops, program

T, V, K = Var("t"), Var("v"), Var("k")
SYNC = Barrier(Scope.SHARED)
IN, OUT = buffer("in", 8), buffer("out", 8)


def tiled(tensors: list[Tensor], factors: tuple[int, int, int, int], reduce: int = 3) -> State:
    """The product C, its tile in registers and its operands in shared memory."""
    state, local = State.initial(tensors).cache_write("C", "local")
    state, (i, v, t, rows) = state.split("C", "i", factors[:3])
    state, (j, w, u, columns) = state.split("C", "j", factors[1:])
    state = state.reorder("C", [i, j, v, w, t, u, rows, columns])
    for index, pair in zip(("blockIdx.x", "vthread", "threadIdx.x"),
                           ([i, j], [v, w], [t, u]), strict=True):  # fmt: skip
        state, fused = state.fuse("C", pair)
        state = state.bind("C", fused, index)
    state = state.compute_at(local, "C", fused)
    state, (k, rest) = state.split(local, "k", (reduce,))
    state = state.reorder(local, [k, rest, "i", "j"])
    for operand in ("A", "B"):
        state, cached = state.cache_read(operand, "shared", [local])
        state = state.compute_at(cached, local, k)
        state, fused = state.fuse(cached, list(state.stage(cached).iters))
        state, (_, thread) = state.split(cached, fused, (factors[1] * factors[2],))
        state = state.bind(cached, thread, "threadIdx.x")
    return state


def run(state: State, seed: int = 0) -> None:
    """Assert that the program of *state* computes its definition."""
    rng = np.random.default_rng(seed)
    data = {a.name: rng.standard_normal(a.shape).astype(np.float32) for a in state.definition.args}
    (expected,) = run_dag(state.definition, data, dtype=DType.FLOAT64)
    made = lower(state).run
    arrays = [data[p.buffer.name] for p in made.params if p.role is not Role.OUTPUT]
    found = np.empty(expected.shape, np.float32)
    run_program(made, [*arrays, found])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


def program_of(body: Stmt) -> Program:
    return program(body, [IN], [OUT])


def of_kind(stmt: Stmt, kind: type[Stmt]) -> list[Stmt]:
    return [s for s in walk_stmts(stmt) if isinstance(s, kind)]


def shared_of(stmt: Stmt) -> dict[str, tuple[int, ...]]:
    found = [s.buffer for s in walk_stmts(stmt) if isinstance(s, Alloc)]
    return {b.name: b.shape for b in found if b.scope is Scope.SHARED}


def test_a_shared_tile_holds_what_all_threads_of_a_block_read() -> None:
    made = lower(tiled(workloads.matmul(24, 24, 9), (2, 3, 2, 2))).run
    # Blocks of 2 * 3 * 2 = 12 rows and 3 * 2 * 2 = 12 columns, 3 steps of the reduction.
    assert shared_of(made.body) == {"A.shared": (12, 3), "B.shared": (3, 12)}


@pytest.mark.parametrize("n, m, k", [(24, 24, 9), (23, 29, 7), (12, 12, 3), (1, 13, 1), (5, 1, 4)])
def test_tiles_of_any_shape_compute_the_product(n: int, m: int, k: int) -> None:
    run(tiled(workloads.matmul(n, m, k), (2, 3, 2, 2)))


def test_the_window_of_a_block_includes_its_border() -> None:
    a, r = placeholder((30,), name="A"), reduce_axis(3, name="r")
    out = compute((28,), lambda i: sum_over(a[i + r] * 2.0, axis=r), name="C")
    state, local = State.initial([a, out]).cache_write("C", "local")
    state, (block, thread, _) = state.split("C", "i", (4, 2))
    state = state.bind("C", block, "blockIdx.x").bind("C", thread, "threadIdx.x")
    state = state.compute_at(local, "C", thread)
    state = state.reorder(local, ["r", "i"])
    state, cached = state.cache_read("A", "shared", [local])
    state = state.compute_at(cached, local, "r")
    state, (_, fetch) = state.split(cached, state.stage(cached).iters[0], (4,))
    state = state.bind(cached, fetch, "threadIdx.x")
    assert shared_of(lower(state).run.body) == {"A.shared": (8,)}
    run(state)


@pytest.mark.parametrize("is_copied", [False, True])
def test_what_lies_beyond_a_sum_is_added_only_if_it_is_zero(is_copied: bool) -> None:
    """The tiles of ``A`` and ``B`` have zeros there, so those of their exponentials have ones."""
    a, b = placeholder((3, 10), name="A"), placeholder((10, 8), name="B")
    k = reduce_axis(10, name="k")
    p = compute((3, 10), lambda i, j: exp(a[i, j]), name="P")
    q = compute((10, 8), lambda i, j: exp(b[i, j]), name="Q")
    c = compute((3, 8), lambda i, j: sum_over(p[i, k] * q[k, j], axis=k), name="C")
    state, (outer, _) = State.initial([a, b, c]).split("C", "k", (4,))
    state = state.bind("C", "i", "blockIdx.x").bind("C", "j", "threadIdx.x")
    for operand, factor in (("A", "P"), ("B", "Q")):
        if is_copied:
            state, copy = state.cache_read(factor, "local", ["C"])
            state = state.compute_at(copy, "C", outer)
        state, tile = state.cache_read(operand, "shared", [factor])
        state = state.compute_at(factor, "C", outer).compute_at(tile, "C", outer)
        state = state.bind(tile, state.stage(tile).iters[-1], "threadIdx.x")
    assert not state.check().undecided
    run(state)


def test_one_pair_of_barriers_orders_all_tiles_of_a_loop() -> None:
    made = lower(tiled(workloads.matmul(24, 24, 9), (2, 3, 2, 2))).run
    assert len(of_kind(made.body, Barrier)) == 2


def test_a_tile_made_from_another_waits_for_it() -> None:
    first, second = (buffer(name, 8, scope="shared") for name in ("first", "second"))
    fill = Store(first, (T,), load(IN, T), None)
    use = Store(second, (T,), load(first, 7 - T), None)
    drain = Store(OUT, (T,), load(second, T), None)
    parts, rest = synchronised([(first, fill), (second, use)], drain)
    whole = Alloc(first, Alloc(second, Seq((*parts[0], *parts[1], rest))))
    assert len(of_kind(whole, Barrier)) == 3
    x, out = np.arange(8, dtype=np.float32), np.empty(8, np.float32)
    nest = loops(whole, (T, 8, "threadIdx.x"))
    run_program(program_of(nest), [x, out])
    np.testing.assert_array_equal(out, x[::-1])


def test_virtual_threads_become_unrolled_loops_inside_those_that_wait() -> None:
    tile, acc = buffer("tile", 8, scope="shared"), buffer("acc", scope="local")
    body = loops(Alloc(tile, Alloc(acc, Seq((
        Store(acc, (), const(0.0, DType.FLOAT32), None),
        loops(Seq((
            SYNC,
            loops(Store(tile, (K * 4 + T,), load(IN, K * 4 + T), None), (K, 2, "serial")),
            SYNC,
            Store(acc, (), load(tile, 7 - (V * 4 + T)), ReduceKind.SUM),
        )), (Var("step"), 3, "serial")),
        Store(OUT, (V * 4 + T,), load(acc), None),
    )))), (V, 2, "vthread"), (T, 4, "threadIdx.x"))  # fmt: skip
    expanded = without_vthreads(body)
    kinds = [s.kind for s in walk_stmts(expanded) if isinstance(s, For)]
    assert ForKind.VTHREAD not in kinds
    assert kinds.count(ForKind.UNROLLED) == 3  # the start, the sum and the result; not the fetch
    assert len(of_kind(expanded, Barrier)) == 2
    assert {s.buffer.shape for s in walk_stmts(expanded) if isinstance(s, Alloc)} == {(8,), (2,)}
    x, found = np.arange(8, dtype=np.float32), []
    for nest in (body, expanded):
        found.append(np.empty(8, np.float32))
        run_program(program_of(nest), [x, found[-1]])
    np.testing.assert_array_equal(found[1], 3 * x[::-1])
    np.testing.assert_array_equal(found[0], found[1])


def test_a_condition_of_the_virtual_thread_stays_with_it() -> None:
    guarded = If(V * 4 + T < 7, Store(OUT, (V * 4 + T,), load(IN, V * 4 + T), None),
                 Store(OUT, (const(7),), const(0.0, DType.FLOAT32), None))  # fmt: skip
    body = loops(guarded, (V, 2, "vthread"), (T, 4, "threadIdx.x"))
    out = np.empty(8, np.float32)
    run_program(program_of(without_vthreads(body)), [np.arange(8, dtype=np.float32), out])
    np.testing.assert_array_equal(out, [0, 1, 2, 3, 4, 5, 6, 0])


def test_what_binds_no_loop_is_run_by_one_thread() -> None:
    store = Store(OUT, (const(0),), const(0.0, DType.FLOAT32), None)
    kinds = [s.kind for s in walk_stmts(launched(store)) if isinstance(s, For)]
    assert kinds == [ForKind.BLOCK_X, ForKind.THREAD_X]
    nest = loops(store, (T, 1, "threadIdx.x"))
    assert launched(nest) is nest


def test_a_result_that_threads_share_is_in_shared_memory() -> None:
    a, k = placeholder((6, 8), name="A"), reduce_axis(8, name="k")
    total = compute((6,), lambda i: sum_over(a[i, k], axis=k), name="total")
    out = compute((6, 8), lambda i, j: a[i, j] / total[i], name="out")
    state = State.initial(ComputeDAG([out]))
    state = state.bind("out", "i", "blockIdx.x").bind("out", "j", "threadIdx.x")
    state = state.compute_at("total", "out", "i")
    made = lower(state).run
    assert shared_of(made.body) == {"total": (1,)}
    run(state)
