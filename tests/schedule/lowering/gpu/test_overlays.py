"""Results in shared memory that take the place of others: where they may, and that they do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ansorpy.ir import builders as b
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.loops import Alloc, Scope, walk_stmts
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.schedule.lowering.gpu.overlays import overlays
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests.faults import planted_races
from tests.rules.test_gpu_programs import check

Formula = Callable[[Tensor, Expr, Expr], Expr]
ROWS, COLUMNS = 6, 20


def weights(raised: Formula, out: Formula, *, dtype: str = "float32") -> list[Tensor]:
    """Squares ``s`` of each row, their largest, what *raised* makes of them, and *out* of that."""
    x, k = placeholder((ROWS, COLUMNS), name="x"), reduce_axis(COLUMNS, name="k")
    s = compute((ROWS, COLUMNS), lambda i, j: x[i, j] * x[i, j], name="s")
    top = compute((ROWS,), lambda i: b.max(s[i, k], axis=k), name="top")
    e = compute(
        (ROWS, COLUMNS), lambda i, j: b.exp(raised(s, i, j) - top[i]).astype(dtype), name="e"
    )
    r = reduce_axis(COLUMNS, name="r")
    total = compute((ROWS,), lambda i: b.sum(e[i, r].astype("float32"), axis=r), name="total")

    def made(i: Expr, j: Expr) -> Expr:
        return e[i, j].astype("float32") / total[i] + out(s, i, j)

    return [x, compute((ROWS, COLUMNS), made, name="out")]


def in_blocks(tensors: list[Tensor], inner: str | None = "threadIdx.x") -> State:
    """All stages at two rows of the last, their elements on threads."""
    state, (block, _) = State.initial(tensors).split("out", "i", (2,))
    if inner is not None:
        state = state.bind("out", block, "blockIdx.x").bind("out", "j", inner)
    for name in ("s", "e", "top", "total"):
        state = state.compute_at(name, "out", block)
        if inner is not None and name in "se":
            state = state.bind(name, "j", inner)
        elif inner is not None:
            state, (_, lane) = state.split(name, "k" if name == "top" else "r", (COLUMNS,))
            state = state.bind(name, lane, inner)
    return state


def alike(s: Tensor, i: Expr, j: Expr) -> Expr:
    return s[i, j]


def nothing(s: Tensor, i: Expr, j: Expr) -> Expr:
    return (i + j).astype("float32")


def turned(s: Tensor, i: Expr, j: Expr) -> Expr:
    return s[i, (j + 1) % COLUMNS]


def test_the_last_to_read_an_element_takes_its_place(rng: np.random.Generator) -> None:
    tensors = weights(alike, nothing)
    state = in_blocks(tensors)
    assert overlays(state) == {"e": "s"}
    program = lower(state).run
    shared = [s.buffer.name for s in walk_stmts(program.body)
              if isinstance(s, Alloc) and s.buffer.scope is Scope.SHARED]  # fmt: skip
    assert "s" in shared and "e" not in shared
    dag = ComputeDAG.of(tensors)
    data = {"x": rng.standard_normal((ROWS, COLUMNS)).astype(np.float32)}
    check(state, data, run_dag(dag, data, dtype=DType.FLOAT64))
    assert planted_races(program, rng) >= {"s", "top", "total"}


@pytest.mark.parametrize(
    "state",
    [
        in_blocks(weights(alike, alike)),
        in_blocks(weights(turned, nothing)),
        in_blocks(weights(alike, nothing, dtype="float16")),
        in_blocks(weights(alike, nothing), inner=None),
    ],
    ids=["read again", "other elements", "other type", "no threads"],
)
def test_other_results_have_memory_of_their_own(state: State) -> None:
    assert overlays(state) == {}
