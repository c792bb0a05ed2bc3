"""Blocks, threads, barriers and shared memory, with races and missing barriers planted."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.errors import LoweringError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, ReduceKind, Var, const
from ansorpy.ir.interpret import run_program
from ansorpy.ir.interpret.races import Race
from ansorpy.ir.loops import Alloc, Barrier, Buffer, If, Scope, Seq, Shuffle, Stmt, Store
from tests.ir.interpret.nests import buffer, load, loops, program

bx, tx, ty, v, k, k0 = (Var(n) for n in ("bx", "tx", "ty", "v", "k", "k0"))
ZERO = const(0.0, DType.FLOAT32)
SYNC = Barrier(Scope.SHARED)
X = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
IN, OUT = buffer("x", 4, 8), buffer("out", 4, 8)


def run(body: Stmt) -> np.ndarray:
    out = np.full((4, 8), 77, dtype=np.float32)
    run_program(program(body, [IN], [OUT]), [X, out])
    return out


def grid(body: Stmt) -> Stmt:
    return loops(body, (bx, 4, "blockIdx.x"), (tx, 8, "threadIdx.x"))


def reversed_rows(barrier: bool, back: Expr = 7 - tx) -> Stmt:
    """Each block reverses its row through shared memory."""
    tile = buffer("tile", 8, scope="shared")
    fill = Store(tile, (tx,), load(IN, bx, tx), None)
    drain = Store(OUT, (bx, tx), load(tile, back), None)
    return grid(Alloc(tile, Seq((fill, SYNC, drain) if barrier else (fill, drain))))


def test_threads_exchange_values_through_shared_memory() -> None:
    np.testing.assert_array_equal(run(reversed_rows(barrier=True)), X[:, ::-1])


def test_a_missing_barrier_is_found_and_both_statements_named() -> None:
    with pytest.raises(
        Race, match=r'tile\[\d\] .*"tile\[tx\] = x\[bx, tx\]" and "out\[bx, tx\] = tile\[7 - tx\]"'
    ):
        run(reversed_rows(barrier=False))


def test_a_thread_may_read_what_it_wrote_itself() -> None:
    np.testing.assert_array_equal(run(reversed_rows(barrier=False, back=tx)), X)


def accumulated(second_barrier: bool) -> Stmt:
    """Rotating sums over a tile that is filled again in each step of k0."""
    tile = buffer("tile", 8, scope="shared")
    acc = buffer("acc", 1, scope="local")
    step = [
        Store(tile, (tx,), load(IN, (bx + k0) % 4, tx), None),
        SYNC,
        loops(Store(acc, (const(0),), load(tile, (tx + k) % 8), ReduceKind.SUM), (k, 3, "serial")),
    ]
    if second_barrier:
        step.append(SYNC)
    return grid(Alloc(tile, Alloc(acc, Seq((
        Store(acc, (const(0),), ZERO, None),
        loops(Seq(tuple(step)), (k0, 4, "serial")),
        Store(OUT, (bx, tx), load(acc, 0), None),
    )))))  # fmt: skip


def test_a_tile_in_a_loop_needs_a_barrier_before_it_is_filled_again() -> None:
    rolled = np.sum([np.roll(X, -s, axis=1) for s in range(3)], axis=(0, 1))
    np.testing.assert_allclose(
        run(accumulated(True)), np.tile(rolled, (4, 1)), rtol=1e-4, atol=1e-5
    )
    with pytest.raises(Race, match=r'"acc\[0\] \+= tile\[\(tx \+ k\) % 8\]" and "tile\[tx\] = '):
        run(accumulated(False))


def test_shared_memory_is_each_blocks_own_and_undefined_at_the_start() -> None:
    tile = buffer("tile", 8, scope="shared")
    only = If(bx.equal(0), Store(tile, (tx,), load(IN, bx, tx), None), None)
    with pytest.raises(LoweringError, match=r"tile\[0\] is read before it is written"):
        run(grid(Alloc(tile, Seq((only, SYNC, Store(OUT, (bx, tx), load(tile, tx), None))))))


def test_a_barrier_in_a_condition_of_the_thread_diverges() -> None:
    body = grid(Seq((If(tx < 4, SYNC, None), Store(OUT, (bx, tx), load(IN, bx, tx), None))))
    with pytest.raises(
        LoweringError, match=r"only 4 of 8 threads of a block reach barrier\(shared\)"
    ):
        run(body)


def test_a_barrier_in_a_condition_of_the_block_is_fine() -> None:
    body = grid(Seq((If(bx < 2, SYNC, None), Store(OUT, (bx, tx), load(IN, bx, tx), None))))
    np.testing.assert_array_equal(run(body), X)


def exchange(barrier: Scope | None, across_blocks: bool) -> Stmt:
    """Write global memory, synchronise, read what another thread wrote."""
    tmp = buffer("tmp", 4, 8, scope="workspace")
    row: Expr = (bx + 1) % 4 if across_blocks else bx
    body: list[Stmt] = [Store(tmp, (bx, tx), load(IN, bx, tx), None)]
    if barrier is not None:
        body.append(Barrier(barrier))
    body.append(Store(OUT, (bx, tx), load(tmp, row, 7 - tx), None))
    return Alloc(tmp, grid(Seq(tuple(body))))


def test_only_a_grid_barrier_orders_blocks() -> None:
    np.testing.assert_array_equal(run(exchange(Scope.SHARED, False)), X[:, ::-1])
    np.testing.assert_array_equal(run(exchange(Scope.GLOBAL, True)), np.roll(X, -1, 0)[:, ::-1])
    for barrier, across in ((None, False), (None, True), (Scope.SHARED, True)):
        with pytest.raises(Race, match="two threads access tmp"):
            run(exchange(barrier, across))


def test_two_kernels_in_a_row_are_ordered() -> None:
    tmp = buffer("tmp", 4, 8, scope="workspace")
    by, ux = Var("by"), Var("ux")
    first = grid(Store(tmp, (bx, tx), load(IN, bx, tx), None))
    second = loops(
        Store(OUT, (by, ux), load(tmp, 3 - by, ux), None),
        (by, 4, "blockIdx.x"),
        (ux, 8, "threadIdx.x"),
    )
    np.testing.assert_array_equal(run(Alloc(tmp, Seq((first, second)))), X[::-1])


def test_two_threads_writing_one_element_race_even_with_equal_values() -> None:
    with pytest.raises(Race, match=r"two threads access out\[0, 0\]"):
        run(grid(Store(OUT, (bx, tx // 2), ZERO, None)))


def test_virtual_threads_share_a_thread_and_run_in_step() -> None:
    tile, acc = buffer("tile", 8, scope="shared"), buffer("acc", 2, scope="local")
    fill = loops(Store(tile, (v * 4 + tx,), load(IN, bx, v * 4 + tx), None), (v, 2, "vthread"))
    w = Var("w")
    body = Alloc(tile, Alloc(acc, Seq((
        fill,
        SYNC,
        loops(Seq((Store(acc, (w,), load(tile, 7 - (w * 4 + tx)), None), SYNC)), (w, 2, "vthread")),
        loops(Store(OUT, (bx, k * 4 + tx), load(acc, k), None), (k, 2, "serial")),
    ))))  # fmt: skip
    nest = loops(body, (bx, 4, "blockIdx.x"), (tx, 4, "threadIdx.x"))
    np.testing.assert_array_equal(run(nest), X[:, ::-1])


def test_registers_persist_between_thread_loops_of_a_block() -> None:
    acc = buffer("acc", 1, scope="local")
    ux = Var("ux")
    body = Alloc(acc, Seq((
        loops(Store(acc, (const(0),), load(IN, bx, tx), None), (tx, 8, "threadIdx.x")),
        loops(Store(OUT, (bx, ux), load(acc, 0), None), (ux, 8, "threadIdx.x")),
    )))  # fmt: skip
    np.testing.assert_array_equal(run(loops(body, (bx, 4, "blockIdx.x"))), X)


def test_an_inner_loop_over_a_bound_index_names_the_same_threads() -> None:
    ux = Var("ux")
    cooperative = buffer("tile", 8, scope="shared")
    fill = loops(
        Store(cooperative, (k * 4 + ux,), load(IN, bx, k * 4 + ux), None),
        (k, 2, "serial"),
        (ux, 4, "threadIdx.x"),
    )
    drain = Store(OUT, (bx, tx), load(cooperative, 7 - tx), None)
    body = grid(Alloc(cooperative, Seq((fill, SYNC, drain))))
    np.testing.assert_array_equal(run(body), X[:, ::-1])
    wide = grid(loops(Store(OUT, (bx, ux), ZERO, None), (ux, 16, "threadIdx.x")))
    with pytest.raises(LoweringError, match="threadIdx.x of extent 16 is inside one of 8"):
        run(wide)


def test_a_two_dimensional_block() -> None:
    body = loops(
        Store(OUT, (ty * 2 + bx, tx), load(IN, ty * 2 + bx, tx), None),
        (bx, 2, "blockIdx.y"), (ty, 2, "threadIdx.y"), (tx, 8, "threadIdx.x"),
    )  # fmt: skip
    np.testing.assert_array_equal(run(body), X)


def test_barriers_and_launches_have_their_place() -> None:
    with pytest.raises(LoweringError, match="outside of a kernel launch"):
        run(SYNC)
    with pytest.raises(LoweringError, match="inside a parallel loop"):
        run(loops(grid(Store(OUT, (bx, tx), ZERO, None)), (k, 2, "parallel")))
    with pytest.raises(LoweringError, match="a parallel loop over k is inside a kernel launch"):
        run(grid(loops(Store(OUT, (bx, tx), ZERO, None), (k, 2, "parallel"))))


def matmul(tile: int, missing: int | None = None) -> tuple[Stmt, list[Buffer], Buffer]:
    """A tiled product of 8x8 matrices through shared memory; statement *missing* is left out."""
    a, b, c = (buffer(name, 8, 8) for name in "abc")
    sa, sb = (buffer(name, tile, tile, scope="shared") for name in ("sa", "sb"))
    acc = buffer("acc", 1, scope="local")
    by = Var("by")
    row, col = by * tile + ty, bx * tile + tx
    step: list[Stmt] = [
        Store(sa, (ty, tx), load(a, row, k0 * tile + tx), None),
        Store(sb, (ty, tx), load(b, k0 * tile + ty, col), None),
        SYNC,
        loops(
            Store(acc, (const(0),), load(sa, ty, k) * load(sb, k, tx), ReduceKind.SUM),
            (k, tile, "serial"),
        ),
        SYNC,
    ]
    if missing is not None:
        del step[missing]
    body = Alloc(sa, Alloc(sb, Alloc(acc, Seq((
        Store(acc, (const(0),), ZERO, None),
        loops(Seq(tuple(step)), (k0, 8 // tile, "serial")),
        Store(c, (row, col), load(acc, 0), None),
    )))))  # fmt: skip
    nest = loops(
        body, (by, 8 // tile, "blockIdx.y"), (bx, 8 // tile, "blockIdx.x"),
        (ty, tile, "threadIdx.y"), (tx, tile, "threadIdx.x"),
    )  # fmt: skip
    return nest, [a, b], c


def test_a_tiled_matrix_product_needs_both_of_its_barriers() -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((8, 8)).astype(np.float32) for _ in range(2))
    nest, inputs, output = matmul(4)
    c = np.empty((8, 8), np.float32)
    run_program(program(nest, inputs, [output]), [a, b, c])
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)
    for missing in (2, 4):
        nest, inputs, output = matmul(4, missing)
        with pytest.raises(Race, match="two threads access s[ab]"):
            run_program(program(nest, inputs, [output]), [a, b, c])


@pytest.mark.parametrize("distance", [1, 2, 4])
def test_threads_read_registers_of_their_partners(distance: int) -> None:
    got = buffer("got", 1, scope="local")
    exchange = Shuffle(got, (const(0),), load(IN, bx, tx) + 1.0, distance)
    found = run(grid(Alloc(got, Seq((exchange, Store(OUT, (bx, tx), load(got, const(0)), None))))))
    np.testing.assert_array_equal(found, X[:, np.arange(8) ^ distance] + 1)


@pytest.mark.parametrize(("distance", "some"), [(8, tx < 8), (4, tx < 4), (1, tx >= 1)])
def test_a_partner_that_is_not_there_is_found(distance: int, some: Expr) -> None:
    got = buffer("got", 1, scope="local")
    exchange = Shuffle(got, (const(0),), load(IN, bx, tx), distance)
    with pytest.raises(LoweringError, match="exchanges values with one that does not take part"):
        run(grid(If(some, Alloc(got, exchange), None)))
