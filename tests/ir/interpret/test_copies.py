"""Asynchronous copies: what they write is nobody's before it was waited for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ansorpy.errors import LoweringError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, Select, Var, as_expr, const
from ansorpy.ir.interpret import run_program
from ansorpy.ir.interpret.races import Race
from ansorpy.ir.loops import (
    Alloc,
    Async,
    AsyncCopy,
    Barrier,
    Commit,
    If,
    Scope,
    Seq,
    Stmt,
    Store,
    Wait,
)
from ansorpy.ir.text.printer import text
from ansorpy.ir.verify import verify
from tests.ir.interpret.nests import buffer, load, loops, program

B, T, K, S = (Var(n) for n in ("b", "t", "k", "s"))
X = np.random.default_rng(1).standard_normal((6, 8)).astype(np.float32)
IN, OUT = buffer("x", 6, 8), buffer("out", 2, 8)
COMMIT, SYNC = Commit(Async.COPIES), Barrier(Scope.SHARED)


def run(body: Stmt) -> np.ndarray:
    nest = loops(body, (B, 2, "blockIdx.x"), (T, 8, "threadIdx.x"))
    made = program(nest, [IN], [OUT])
    verify(made)
    out = np.full((2, 8), 77, dtype=np.float32)
    run_program(made, [X, out])
    return out


def reversed_row(wait: Sequence[Stmt], value: Expr | None = None) -> Stmt:
    """Each block reverses a row that it copies into shared memory."""
    tile = buffer("tile", 8, scope="shared")
    copy = AsyncCopy(tile, (T,), load(IN, B, T) if value is None else value)
    drain = Store(OUT, (B, T), load(tile, 7 - T), None)
    return Alloc(tile, Seq((copy, *wait, drain)))


def test_a_copy_that_was_waited_for_is_there() -> None:
    found = run(reversed_row([COMMIT, Wait(Async.COPIES, 0), SYNC]))
    np.testing.assert_array_equal(found, X[:2, ::-1])


@pytest.mark.parametrize("wait", [
    [SYNC], [COMMIT, SYNC], [COMMIT, Wait(Async.COPIES, 1), SYNC], [Wait(Async.COPIES, 0), SYNC],
    [Wait(Async.COPIES, 0), COMMIT, SYNC],
])  # fmt: skip
def test_a_read_before_the_wait_is_found(wait: list[Stmt]) -> None:
    with pytest.raises(LoweringError, match=r"tile\[\d\] is read before waiting for the copy"):
        run(reversed_row(wait))


def test_other_threads_need_a_barrier_after_the_wait() -> None:
    for wait in ([COMMIT, Wait(Async.COPIES, 0)], [COMMIT, SYNC, Wait(Async.COPIES, 0)]):
        with pytest.raises(Race, match=r"tile\[\d\] .*copy\(x\[b, t\]\)"):
            run(reversed_row(wait))


def test_groups_are_counted_for_each_thread() -> None:
    wait = [If(T < 4, COMMIT, None), COMMIT, Wait(Async.COPIES, 1), SYNC]
    with pytest.raises(LoweringError, match="before waiting for the copy to it"):
        run(reversed_row(wait))


def test_zeros_may_stand_for_what_is_outside() -> None:
    inside = Select(T < 5, load(IN, B, T), const(0.0, DType.FLOAT32))
    found = run(reversed_row([COMMIT, Wait(Async.COPIES, 0), SYNC], inside))
    np.testing.assert_array_equal(found, np.where(np.arange(8) < 5, X[:2], 0)[:, ::-1])


def pipeline(stages: int, pending: int | None = None, barrier: bool = True) -> Stmt:
    """Rotated rows of x summed up, copied *stages* - 1 steps ahead."""
    tile, acc = buffer("tile", stages, 8, scope="shared"), buffer("acc", scope="local")
    ahead = stages - 1

    def fetch(row: Expr) -> Stmt:
        copy = AsyncCopy(tile, (row % stages, T), load(IN, row, T))
        return Seq((If(row < 6, copy, None), COMMIT))

    wait = Wait(Async.COPIES, ahead - 1 if pending is None else pending)
    added = Store(acc, (), load(acc) + load(tile, K % stages, (T + 1) % 8), None)
    step = (wait, *([SYNC] if barrier else []), fetch(K + ahead), added)
    return Alloc(tile, Alloc(acc, Seq((
        Store(acc, (), as_expr(0.0, DType.FLOAT32), None),
        loops(fetch(S), (S, ahead, "serial")),
        loops(Seq(step), (K, 6, "serial")),
        Store(OUT, (B, T), load(acc), None),
    ))))  # fmt: skip


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_a_pipeline_needs_one_barrier_a_step(stages: int) -> None:
    expected = np.roll(X, -1, axis=1).sum(axis=0)
    np.testing.assert_allclose(run(pipeline(stages)), np.stack([expected] * 2), rtol=1e-5)
    with pytest.raises(Race, match="tile"):
        run(pipeline(stages, barrier=False))
    with pytest.raises(LoweringError, match="before waiting for the copy to it"):
        run(pipeline(stages, pending=stages - 1))


def test_copies_print_and_are_checked() -> None:
    made = program(loops(pipeline(3), (B, 2, "blockIdx.x"), (T, 8, "threadIdx.x")), [IN], [OUT])
    lines = text(made).splitlines()
    assert "      wait_copies(1)" in [line[2:] for line in lines]
    assert any(line.strip() == "tile[s % 3, t] = copy(x[s, t])" for line in lines)
    inner = reversed_row([COMMIT], load(IN, B, T) * 2.0)
    with pytest.raises(LoweringError, match="only an element of global memory"):
        run(inner)
    local = buffer("mine", 8, scope="local")
    with pytest.raises(LoweringError, match="mine is in local memory"):
        run(Alloc(local, AsyncCopy(local, (T,), load(IN, B, T))))
