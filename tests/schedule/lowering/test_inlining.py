"""Chains whose stages read their input several times grow with their length, all the way to code.

Written out as trees, thirty stages that read their input twice are a billion nodes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import ansorpy as ap
from ansorpy.codegen.cuda.emit.program import emit_cuda
from ansorpy.codegen.llvm.emit.program import emit_llvm
from ansorpy.cost.counts import count_ops
from ansorpy.ir.dag import ComputeDAG, loads_of
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Binary, Expr, walk
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.loops import walk_stmts
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor, compute, placeholder
from ansorpy.ir.text.printer import text
from ansorpy.rules.matching.relations import consumers, producers
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import CUDA
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests.codegen.cuda.emulator import TARGET
from tests.frontend.models import graph_model, node
from tests.properties.test_schedules import interpreted

LENGTH = 30
EXTENT = 37


def chain(length: int = LENGTH, extent: int = EXTENT) -> ComputeDAG:
    """``s[k] = s[k - 1] * (1.5 - s[k - 1] / 2)``, which tends to 1."""

    def stage(k: int, read: Tensor) -> Tensor:
        return compute((extent,), lambda i: read[i] * (1.5 - read[i] * 0.5), name=f"s{k}")

    return _chained(length, placeholder((extent,), name="A"), stage)


def stencil(length: int, extent: int = 64) -> ComputeDAG:
    """``s[k][i] = s[k - 1][i] + s[k - 1][i + 1]``."""

    def stage(k: int, read: Tensor) -> Tensor:
        return compute((extent - k - 1,), lambda i: read[i] + read[i + 1], name=f"s{k}")

    return _chained(length, placeholder((extent,), name="A"), stage)


def _chained(length: int, first: Tensor, stage: Callable[[int, Tensor], Tensor]) -> ComputeDAG:
    last = first
    for k in range(length):
        last = stage(k, last)
    return ComputeDAG.of([first, last])


def inlined(dag: ComputeDAG) -> State:
    """Everything but the output of *dag* inlined."""
    state = State.initial(dag)
    for op in dag.computes[:-1]:
        state = state.compute_inline(op.name)
    return state


def body(state: State) -> Expr:
    """What the only stage with loops computes."""
    [op] = state.inlined_dag.ops.values()
    return op.body


def values(extent: int = EXTENT) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.2, 1.8, extent).astype(np.float32)


def computed(x: np.ndarray, length: int = LENGTH) -> np.ndarray:
    for _ in range(length):
        x = x * (np.float32(1.5) - x * np.float32(0.5))
    return x


@pytest.mark.parametrize("length", [2, 10, 30, 60])
def test_an_inlined_chain_grows_with_its_length(length: int) -> None:
    found = body(inlined(chain(length)))
    arithmetic = [e for e in walk(found) if isinstance(e, Binary)]
    assert len(arithmetic) == 3 * length
    assert count_ops(found).floats.total == 3 * length


def test_what_is_read_at_one_place_by_two_ways_is_expanded_once() -> None:
    state = inlined(stencil(20))
    [(_, indices)] = loads_of(state.inlined_dag.ops["s19"]).items()
    assert len(indices) <= 2 * 20
    assert sum(isinstance(e, Binary) and e.dtype.is_float for e in walk(body(state))) == 20 * 21 / 2
    data = {"A": np.arange(64, dtype=np.float32)}
    [expected] = run_dag(state.definition, data)
    [found] = interpreted(lower(state), data)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_an_element_read_at_a_computed_place_is_expanded_first() -> None:
    """The index of an inlined operator may itself read one that comes later."""
    a, at = placeholder((9,), name="A"), placeholder((5,), DType.INT64, name="at")
    table = compute((9,), lambda i: a[i] * 3.0, name="table")
    clipped = compute((5,), lambda i: ap.minimum(at[i], 8), name="clipped")
    out = compute((5,), lambda i: table[clipped[i]] - table[clipped[i]] * table[i], name="out")
    state = inlined(ComputeDAG.of([a, at, out]))
    data = {"A": np.arange(9, dtype=np.float32), "at": np.array([8, 0, 12, 3, 3])}
    [expected] = run_dag(state.definition, data)
    [found] = interpreted(lower(state), data)
    np.testing.assert_array_equal(found, expected)


def test_the_program_of_a_chain_is_short_and_right() -> None:
    lowered: Lowered = lower(inlined(chain()))
    [found] = interpreted(lowered, {"A": values()})
    np.testing.assert_allclose(found, computed(values()), rtol=1e-6)
    assert len(list(walk_stmts(lowered.run.body))) < 10
    assert len(text(lowered.run)) < 100 * LENGTH


def test_the_code_of_a_chain_multiplies_twice_a_stage() -> None:
    state = inlined(chain())
    state = state.vectorize("s29", ["i"])
    code = emit_llvm(lower(state).run, Target.host(), "chain")
    products = re.findall(r"fmul .*", code)
    assert LENGTH <= len(products) <= 2 * LENGTH * 8  # a vector loop of several vectors


def test_the_gpu_code_of_a_chain_multiplies_twice_a_stage() -> None:
    rng = np.random.default_rng(1)
    task = Task(chain(extent=4096), TARGET, 1)
    texts = []
    for sketch in SketchSampler(task, CUDA).draw(4, rng):
        table = sketch.sample(16, rng)
        for row in table[sketch.valid(table)][:1]:
            texts.append(emit_cuda(lower(sketch.resolve(row)).run, TARGET, "chain").kernels)
    assert texts
    assert all(code.count("1.5f") <= LENGTH * 16 for code in texts)


def test_neighbours_of_inlined_stages_are_found_once_a_stage() -> None:
    state = inlined(diamonds := chain(200))
    assert [s.name for s in consumers(state, state.stage("A"))] == ["s199"]
    assert [s.name for s in producers(state, state.stage("s199"))] == ["A"]
    assert len(diamonds.ops) == 201


def test_a_long_chain_is_tuned() -> None:
    dag = chain()
    kernel = ap.tune([*dag.args, *dag.outputs], trials=2, threads=1, seed=1)
    np.testing.assert_allclose(kernel(values()), computed(values()), rtol=1e-5)


def test_a_network_of_forty_gates_is_compiled() -> None:
    nodes, before, last = [], "x", "x"
    for k in range(40):
        kind = ("Sigmoid", "Mul", "Add")[k % 3]
        read = [last] if kind == "Sigmoid" else [last, before]
        before, last = last, f"t{k}"
        nodes.append(node(kind, read, [last]))
    model = graph_model(nodes, {"x": (3, 7)}, [last])
    x = values(21).reshape(3, 7) - np.float32(1)
    now, previous = x.astype(np.float64), x.astype(np.float64)
    for k in range(40):
        done = (1 / (1 + np.exp(-now)), now * previous, now + previous)[k % 3]
        now, previous = done, now
    [found] = ap.compile(model, effort="none", threads=1).run(None, {"x": x})
    np.testing.assert_allclose(found, now, rtol=1e-4)
