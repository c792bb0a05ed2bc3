"""What is scheduled for blocks and threads, run by the CPU one after another."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.codegen.cuda.passes.run_on_host import for_host
from ansorpy.errors import CodegenError
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.interpret.program import run_program
from ansorpy.ir.loops import For, ForKind, walk_stmts
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State


def scaled() -> ComputeDAG:
    """``X * (2 B)``, whose first stage depends on constants alone."""
    x, b = placeholder((6, 8), name="X"), placeholder((6, 8), name="B", constant=True)
    double = compute((6, 8), lambda i, j: b[i, j] * 2.0, name="D")
    return ComputeDAG.of([x, b, compute((6, 8), lambda i, j: x[i, j] * double[i, j], name="Y")])


def test_loops_over_blocks_and_threads_become_serial(rng: np.random.Generator) -> None:
    state = State.initial(scaled())
    for stage in ("D", "Y"):
        state = state.bind(stage, "i", "blockIdx.x").bind(stage, "j", "threadIdx.x")
    bind = lower(state).bind
    assert bind is not None
    host = for_host(bind)
    assert {s.kind for s in walk_stmts(host.body) if isinstance(s, For)} == {ForKind.SERIAL}
    b = rng.standard_normal((6, 8), dtype=np.float32)
    made = np.zeros((6, 8), np.float32)
    run_program(host, [b, made])
    assert np.array_equal(made, b * 2)


def test_threads_that_work_together_are_refused() -> None:
    a = placeholder((4, 64), name="A")
    k = reduce_axis(64, name="k")
    dag = ComputeDAG.of([a, compute((4,), lambda i: sum_over(a[i, k], axis=k), name="S")])
    state = State.initial(dag).bind("S", "i", "blockIdx.x").bind("S", "k", "threadIdx.x")
    with pytest.raises(CodegenError, match="threads that cooperate"):
        for_host(lower(state).run)
