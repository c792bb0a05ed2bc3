"""The memory of what is computed in a loop, by the threads that read it there."""

from __future__ import annotations

import pytest

from ansorpy.ir.loops import Alloc, Scope, walk_stmts
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests.schedule.test_shift import check


def chain() -> State:
    """``P`` and ``E`` are computed in the rows of ``D``, and ``Q`` in those of ``E``."""
    x = placeholder((6, 40), name="X")
    p = compute((6, 40), lambda i, j: x[i, j] * 2.0, name="P")
    q = compute((6, 40), lambda i, j: p[i, j] + 1.0, name="Q")
    e = compute((6, 40), lambda i, j: q[i, j] * 3.0, name="E")
    state = State.initial([x, compute((6, 40), lambda i, j: e[i, j] - 1.0, name="D")])
    state = state.compute_at("E", "D", "i").compute_at("P", "D", "i")
    return state.compute_at("Q", "E", "j")


@pytest.mark.parametrize(
    ("parallel", "shared"),
    [(("E", "j"), {"P", "E"}), (("D", "j"), {"P", "E"}), (("D", "i"), set())],
)
def test_threads_inside_the_loop_share_what_they_read(
    parallel: tuple[str, str], shared: set[str]
) -> None:
    stage, loop = parallel
    state = chain().parallel(stage, [loop])
    found = {s.buffer.name: s.buffer.scope for s in walk_stmts(lower(state).run.body)
             if isinstance(s, Alloc)}  # fmt: skip
    assert {name for name, scope in found.items() if scope is Scope.WORKSPACE} == shared
    check(state)
