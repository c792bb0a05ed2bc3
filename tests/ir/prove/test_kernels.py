"""Kernels: what is proved, and the message for each kind of planted fault."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from ansorpy.errors import LoweringError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, Var, const
from ansorpy.ir.extents import Extent, dim
from ansorpy.ir.fragments import Digit
from ansorpy.ir.interpret import run_program
from ansorpy.ir.loops import (
    Alloc,
    Async,
    AsyncCopy,
    Barrier,
    Buffer,
    Commit,
    Fence,
    For,
    ForKind,
    If,
    Program,
    Scope,
    Seq,
    Shuffle,
    Stmt,
    Store,
    Wait,
    walk_stmts,
)
from ansorpy.ir.prove import Claim, Verdict, prove
from ansorpy.schedule.lowering.program import lower
from tests.faults import each_left_out
from tests.ir.interpret.nests import buffer, load, loops, program
from tests.tensor_cores import arguments, matmul, values, wgmma_sketches

bx, tx, ty, k = (Var(n) for n in ("bx", "tx", "ty", "k"))
ZERO = const(0.0, DType.FLOAT32)
SYNC = Barrier(Scope.SHARED)
IN, OUT = buffer("x", 4, 64), buffer("out", 4, 64)


def kernel(body: Stmt) -> Program:
    grid = loops(body, (bx, 4, "blockIdx.x"), (tx, 64, "threadIdx.x"))
    return program(grid, [IN], [OUT])


def refusal(body: Stmt, claim: Claim) -> str:
    found = [f.message for f in prove(kernel(body)).refuted if f.claim is claim]
    assert found
    return found[0]


def reversed_rows(*between: Stmt) -> Stmt:
    tile = buffer("tile", 64, scope="shared")
    fill = Store(tile, (tx,), load(IN, bx, tx), None)
    drain = Store(OUT, (bx, tx), load(tile, 63 - tx), None)
    return Alloc(tile, Seq((fill, *between, drain)))


def test_shared_memory_needs_a_barrier_between_threads() -> None:
    assert prove(kernel(reversed_rows(SYNC))).verdict is Verdict.PROVED
    said = refusal(reversed_rows(), Claim.APART)
    assert "access the same element of tile at the same time" in said
    assert '"tile[tx] = x[bx, tx]" and "out[bx, tx] = tile[63 - tx]"' in said


def test_without_a_barrier_only_its_own_writes_are_there_for_a_thread() -> None:
    assert "tile[63] is read before it is written" in refusal(reversed_rows(), Claim.DEFINED)


def test_blocks_must_write_different_elements() -> None:
    said = refusal(Store(OUT, (bx // 2, tx), ZERO, None), Claim.APART)
    assert "blocks" in said and "write the same element of out at the same time" in said


def test_all_threads_reach_a_barrier() -> None:
    said = refusal(reversed_rows(If(tx < 32, SYNC, None)), Claim.TOGETHER)
    assert said == 'only some threads of a block reach "barrier(shared)"'


def test_a_condition_that_all_threads_share_leaves_the_rest_undecided() -> None:
    found = prove(kernel(reversed_rows(If(bx < 2, SYNC, None))))
    assert not [f for f in found.refuted if f.claim is Claim.TOGETHER]
    assert any("is under a condition" in f.message for f in found.undecided)


def exchanged(cond: Expr | None) -> Stmt:
    mine = buffer("mine", 1, scope="local")
    swap: Stmt = Shuffle(mine, (const(0),), load(IN, bx, tx), 16)
    if cond is not None:
        swap = If(cond, swap, None)
    first = Store(mine, (const(0),), ZERO, None)
    return Alloc(mine, Seq((first, swap, Store(OUT, (bx, tx), load(mine, 0), None))))


def test_a_whole_warp_exchanges_values() -> None:
    assert prove(kernel(exchanged(None))).verdict is Verdict.PROVED
    assert prove(kernel(exchanged(tx < 32))).verdict is Verdict.PROVED
    assert "threads of a warp reach" in refusal(exchanged(tx < 48), Claim.TOGETHER)


def pipelined(*, pending: int, barrier: bool = True, ahead: int = 1) -> Stmt:
    """Rows are copied into two slots *ahead* of the iteration that reads them."""
    tile = buffer("tile", 2, 64, scope="shared")

    def fetch(row: Expr) -> Stmt:
        return AsyncCopy(tile, (row % 2, tx), load(IN, row, tx))

    later = If(k + ahead < const(4), fetch(k + ahead), None)
    use = Store(OUT, (k, tx), load(tile, k % 2, 63 - tx), None)
    sync = (Wait(Async.COPIES, pending), *((SYNC,) if barrier else ()))
    step = Seq((*sync, later, Commit(Async.COPIES), use))
    begin = Seq(
        tuple(part for n in range(ahead) for part in (fetch(const(n)), Commit(Async.COPIES)))
    )
    return Alloc(tile, Seq((begin, loops(step, (k, 4, "serial")))))


def one_block(body: Stmt) -> Program:
    return program(loops(body, (tx, 64, "threadIdx.x")), [IN], [OUT])


def test_copies_are_waited_for_and_published() -> None:
    assert prove(one_block(pipelined(pending=0))).verdict is Verdict.PROVED


@pytest.mark.parametrize("broken", [{"pending": 1}, {"pending": 0, "barrier": False}])
def test_a_copy_in_flight_is_named(broken: dict[str, int]) -> None:
    found = prove(one_block(pipelined(**broken)))  # type: ignore[arg-type]
    said = [f.message for f in found.refuted if f.claim is Claim.APART]
    assert any("before the copy to it has arrived" in message for message in said)
    assert any("= copy(x[" in message for message in said)


def waited_in_a_loop(low: int) -> Program:
    """Rows are copied, and waited for in a loop of at least *low* iterations."""
    n, tile = dim("n", low, 4), buffer("tile", 64, scope="shared")
    row = buffer("row", 64)
    sized = Buffer("sized", (n,), DType.FLOAT32, Scope.GLOBAL)
    body = Seq((
        AsyncCopy(tile, (tx,), load(IN, const(0), tx)), Commit(Async.COPIES),
        For(k, n, ForKind.SERIAL, Wait(Async.COPIES, 0)), SYNC,
        Store(row, (tx,), load(tile, 63 - tx), None),
    ))  # fmt: skip
    grid = For(tx, 64, ForKind.THREAD_X, Alloc(tile, body))
    return program(grid, [IN, sized], [row])


def test_a_size_may_have_the_name_of_a_number() -> None:
    assert prove(rows_of_blocks(dim("310.count", 0, 1 << 20), SYNC)).verdict is Verdict.PROVED


def test_a_loop_over_a_size_may_have_no_iteration() -> None:
    assert prove(waited_in_a_loop(1)).verdict is Verdict.PROVED
    found = prove(waited_in_a_loop(0)).refuted
    assert any("before the copy to it has arrived" in f.message for f in found)


def rows_of_blocks(extent: Extent, *between: Stmt) -> Program:
    """As :func:`reversed_rows`, a block for each of *extent* rows."""
    source, target = (
        Buffer(name, (extent, 64), DType.FLOAT32, Scope.GLOBAL) for name in ("x", "out")
    )
    tile = buffer("tile", 64, scope="shared")
    fill = Store(tile, (tx,), load(source, bx, tx), None)
    drain = Store(target, (bx, tx), load(tile, 63 - tx), None)
    body = Alloc(tile, Seq((fill, *between, drain)))
    grid = For(bx, extent, ForKind.BLOCK_X, For(tx, 64, ForKind.THREAD_X, body))
    return program(grid, [source], [target])


def test_blocks_over_a_size_are_proved_for_all_of_them() -> None:
    n = dim("n", 0, 1 << 20)
    assert prove(rows_of_blocks(n, SYNC)).verdict is Verdict.PROVED
    assert prove(rows_of_blocks(n // 2 + 3, SYNC)).verdict is Verdict.PROVED
    refuted = prove(rows_of_blocks(n)).refuted
    assert any(f.claim is Claim.APART for f in refuted)


PRODUCT = matmul("float16", 70, 16, 52)


@cache
def products() -> Program:
    """A product whose asynchronous instructions run while the next tiles arrive."""
    rng = np.random.default_rng(0)
    for sketch in wgmma_sketches(PRODUCT, rng):
        table = sketch.sample(64, rng)
        for row in table[sketch.valid(table)]:
            made = lower(sketch.resolve(row)).run
            if any(
                isinstance(s, Wait) and s.kind is Async.PRODUCTS and s.pending
                for s in walk_stmts(made.body)
            ):
                assert prove(made).verdict is Verdict.PROVED
                return made
    raise AssertionError("no program leaves instructions running")


@pytest.mark.parametrize(
    ("kind", "of"),
    [
        (Fence, None),
        (Barrier, None),
        (Commit, Async.PRODUCTS),
        (Wait, Async.PRODUCTS),
        (Wait, Async.COPIES),
    ],
)
def test_asynchronous_instructions_need_fences_barriers_and_waits(
    kind: type[Stmt], of: Async | None
) -> None:
    made = products()
    known = values(PRODUCT, np.random.default_rng(0))
    faults = 0
    for broken in each_left_out(made, kind, of):
        try:
            run_program(broken, arguments(broken, known))
        except LoweringError:
            faults += 1
            assert prove(broken).verdict is Verdict.REFUTED
    assert faults


def in_registers(row: Expr, column: Expr) -> Stmt:
    """A warp writes 8 x 8 elements, two per lane, and copies them out."""
    share = ((Digit(8, lane=4),), (Digit(4, lane=1), Digit(2, register=1)))
    held = Buffer("held", (8, 8), DType.FLOAT32, Scope.WARP, fragment=share)
    body = Seq((
        loops(Store(held, (row, column), ZERO, None), (k, 2, "unrolled")),
        loops(Store(OUT, (bx, row * 8 + column), load(held, row, column), None),
              (k, 2, "unrolled")),
    ))  # fmt: skip
    lanes = loops(Alloc(held, body), (ty, 8, "threadIdx.y"), (tx, 4, "threadIdx.x"))
    return loops(lanes, (bx, 4, "blockIdx.x"))


def test_a_lane_accesses_only_what_it_holds() -> None:
    right = prove(program(in_registers(ty, tx * 2 + k), [IN], [OUT]))
    assert right.verdict is Verdict.PROVED
    wrong = prove(program(in_registers(ty, tx + k * 4), [IN], [OUT]))
    said = [f.message for f in wrong.refuted if f.claim is Claim.HELD]
    assert said and "a lane accesses an element of held that another lane holds" in said[0]
