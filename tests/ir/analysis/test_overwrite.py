"""Results that may be written over an operand: told by the program, tried in machine code."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ansorpy.codegen.cuda.emit.program import emit_cuda
from ansorpy.codegen.llvm.emit.program import emit_llvm
from ansorpy.errors import AnsorpyError
from ansorpy.ir.analysis.access import domain_of, reads
from ansorpy.ir.analysis.overwrite import may_overlap, overwritable
from ansorpy.ir.builders import max as max_over
from ansorpy.ir.builders import maximum
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Load, Var
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.loops import (
    Alloc,
    Async,
    AsyncCopy,
    Barrier,
    Buffer,
    Commit,
    For,
    ForKind,
    Param,
    Program,
    Role,
    Scope,
    Seq,
    Store,
    Wait,
)
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.stage import Tail
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests.run_native import Arrays, run_native

N, M = 13, 37


def added() -> ComputeDAG:
    a, b = placeholder((N, M), name="A"), placeholder((N, M), name="B")
    return ComputeDAG([compute((N, M), lambda i, j: a[i, j] * 2.0 + b[i, j], name="Y")], [a, b])


def residual(n: int = N, m: int = M, k: int = M) -> ComputeDAG:
    """``relu(X W + R)``; R and X have the result's shape."""
    x, w = placeholder((n, k), name="X"), placeholder((k, m), name="W")
    r, axis = placeholder((n, m), name="R"), reduce_axis(k, name="k")
    product = compute((n, m), lambda i, j: sum_over(x[i, axis] * w[axis, j], axis=axis), name="P")
    out = compute((n, m), lambda i, j: maximum(product[i, j] + r[i, j], 0.0), name="Y")
    return ComputeDAG([out], [x, w, r])


def test_what_is_copied_asynchronously_is_read_then() -> None:
    """Blocks that copy late would copy what others have written."""
    x, y = (Buffer(name, (4, 32), DType.FLOAT32, Scope.GLOBAL) for name in "xy")
    tile, (i, t) = Buffer("tile", (32,), DType.FLOAT32, Scope.SHARED), (Var("i"), Var("t"))
    steps = (
        AsyncCopy(tile, (t,), Load(x, (i, t))), Commit(Async.COPIES), Wait(Async.COPIES, 0),
        Barrier(Scope.SHARED), Store(y, (i, t), Load(tile, (t,)), None),
    )  # fmt: skip
    threads = For(t, 32, ForKind.THREAD_X, Seq(steps))
    body = For(i, 4, ForKind.BLOCK_X, Alloc(tile, threads))
    params = (Param(x, Role.INPUT), Param(y, Role.OUTPUT))
    assert overwritable(Program("copied", params, body)) == ()
    plain = For(t, 32, ForKind.THREAD_X, Store(y, (i, t), Load(x, (i, t)), None))
    assert overwritable(Program("plain", params, For(i, 4, ForKind.BLOCK_X, plain))) == ((0, 0),)


def data_of(dag: ComputeDAG, seed: int = 0) -> Arrays:
    rng = np.random.default_rng(seed)
    return {op.name: rng.standard_normal(op.shape).astype(np.float32) for op in dag.args}


def is_right_over(lowered: Lowered, dag: ComputeDAG, given: str) -> bool:
    """Whether the machine code is right when its result lies over *given*."""
    data = data_of(dag)
    [expected] = run_dag(dag, data)
    [found] = run_native(lowered, data, over={dag.outputs[0].name: given})
    return bool(np.allclose(found, expected, rtol=1e-4, atol=1e-4))


@pytest.mark.parametrize("tile", [1, 13, 5])
def test_elementwise_programs_write_over_either_operand(tile: int) -> None:
    dag = added()
    state = State.initial(dag)
    if tile != 5:
        state, (outer, _) = state.split("Y", "i", (tile,))
        state = state.parallel("Y", [outer])
    lowered = lower(state.vectorize("Y", ["j"]))
    assert overwritable(lowered.run) == ((0, 0), (1, 0))
    assert is_right_over(lowered, dag, "A") and is_right_over(lowered, dag, "B")


def declared(lowered: Lowered, function: str) -> list[bool]:
    """Of each pointer to an argument: whether the code promises that nothing else lies there."""
    ir = emit_llvm(lowered.run, Target.host(), "k")
    [signature] = re.findall(rf"define [^\n]*@{re.escape(function)}\(([^\n]*?)\) ?[^,\n]*{{", ir)
    arguments = [p for p in signature.split(", ") if re.search(r"%(arg|b)\d+$", p)]
    return ["noalias" in p for p in arguments]


@pytest.mark.parametrize("parallel", [False, True])
def test_code_promises_nothing_of_what_a_call_may_lay_over_each_other(parallel: bool) -> None:
    dag = residual()
    state = State.initial(dag).vectorize("Y", ["j"])
    if parallel:
        state = state.parallel("Y", ["i"])
    lowered = lower(state)
    [(number, _)] = overwritable(lowered.run)
    names = [param.buffer.name for param in lowered.run.params]
    apart = [name not in ("R", "Y") for name in names]
    assert names[number] == "R" and declared(lowered, "k.main") == apart
    assert {buffer.name for buffer in may_overlap(lowered.run)} == {"R", "Y"}
    if parallel:  # the region that reads P, R and writes Y
        assert sorted(declared(lowered, "k.region1")) == [False, False, True]


def test_pointers_that_are_always_apart_stay_noalias() -> None:
    a = placeholder((M, M), name="A")
    turned = compute((M, M), lambda i, j: a[j, i] + 1.0, name="Y")
    lowered = lower(State.initial(ComputeDAG([turned])))
    assert declared(lowered, "k.main") == [True, True] and not may_overlap(lowered.run)


def test_kernels_of_gpus_promise_nothing_of_them_either() -> None:
    x, y = (Buffer(name, (4, 32), DType.FLOAT32, Scope.GLOBAL) for name in "xy")
    i, t = Var("i"), Var("t")

    def source(body: Store) -> str:
        threads = For(i, 4, ForKind.BLOCK_X, For(t, 32, ForKind.THREAD_X, body))
        params = (Param(x, Role.INPUT), Param(y, Role.OUTPUT))
        return emit_cuda(Program("k", params, threads), Target.parse("sm_90"), "k").text

    assert "__restrict__" not in source(Store(y, (i, t), Load(x, (i, t)), None))
    assert source(Store(y, (i, t), Load(x, (i, 31 - t)), None)).count("__restrict__") == 2


@pytest.mark.parametrize("tail", ["peel", "even"])
def test_tails_of_their_own_share_no_element(tail: Tail) -> None:
    dag = added()
    state, _ = State.initial(dag).split("Y", "i", (5,), tail=tail)
    lowered = lower(state)
    for number, name in enumerate(("A", "B")):
        if (number, 0) in overwritable(lowered.run):
            assert is_right_over(lowered, dag, name)


def test_a_tile_that_is_computed_again_reads_what_it_wrote() -> None:
    dag = added()
    state, _ = State.initial(dag).split("Y", "i", (5,), tail="shift")
    lowered = lower(state)
    assert overwritable(lowered.run) == ()
    assert not is_right_over(lowered, dag, "A")


def test_neighbours_rows_and_what_other_stages_read_are_needed_longer() -> None:
    a = placeholder((M, M), name="A")
    k = reduce_axis(M, name="k")
    turned = compute((M, M), lambda i, j: a[j, i] + 1.0, name="Y")
    both = compute((M, M), lambda i, j: a[i, j] + a[M - 1 - i, j], name="Y")
    largest = compute((M,), lambda i: max_over(a[i, k], axis=k), name="T")
    scaled = compute((M, M), lambda i, j: a[i, j] - largest[i], name="Y")
    for result in (turned, both, scaled):
        lowered = lower(State.initial(ComputeDAG([result], [a])))
        assert overwritable(lowered.run) == ()
    assert not is_right_over(lower(State.initial(ComputeDAG([turned], [a]))),
                             ComputeDAG([turned], [a]), "A")  # fmt: skip


def test_other_shapes_and_sums_into_the_result_are_not_taken() -> None:
    a, b = placeholder((N, M), name="A"), placeholder((M,), name="B")
    k = reduce_axis(N, name="k")
    rows = compute((N, M), lambda i, j: a[i, j] + b[j], name="Y")
    assert overwritable(lower(State.initial(ComputeDAG([rows], [a, b]))).run) == ((0, 0),)
    columns = compute((M,), lambda j: sum_over(a[k, j] * b[j], axis=k), name="Y")
    assert overwritable(lower(State.initial(ComputeDAG([columns], [a, b]))).run) == ()


def test_a_residual_is_written_over_and_the_data_are_not() -> None:
    dag = residual()
    state, (outer, _) = State.initial(dag).split("Y", "j", (M,))
    lowered = lower(state.compute_at("P", "Y", outer))
    assert overwritable(lowered.run) == ((2, 0),)
    assert is_right_over(lowered, dag, "R")


def is_read_in_place(state: State, given: Tensor) -> bool:
    """Whether isl says that the output alone reads *given*, at its own indices."""
    [output] = state.current_dag.outputs
    for name, op in state.inlined_dag.ops.items():
        own = domain_of(op).access(op.axes, given.shape, given.name)
        for access in reads(op, given):
            if name != output.name or not access.relation.map.is_subset(own.map):
                return False
    return True


def test_sampled_programs_that_may_do_so_are_right() -> None:
    rng = np.random.default_rng(1)
    allowed = refused = 0
    for dag in (residual(16, 32, 32), residual(15, 33, 33), added()):
        sampler = SketchSampler(Task(dag, Target.host(), 2))
        for _ in range(4):
            sketch = sampler.draw_one(rng)
            rows = sketch.sample(64, rng)
            for row in rows[sketch.valid(rows)][:2]:
                state = sketch.resolve(row)
                try:
                    lowered = lower(state)
                except AnsorpyError:
                    continue
                found = overwritable(lowered.run)
                allowed, refused = allowed + bool(found), refused + (not found)
                for given, _ in found:
                    assert is_read_in_place(state, dag.args[given])
                    assert is_right_over(lowered, dag, dag.args[given].name)
    assert allowed > 5 and refused > 0
