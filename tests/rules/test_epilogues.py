"""Whatever follows a product element by element is computed in its tiles: one pass over memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ansorpy.ir import builders as ap
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Expr
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.loops import Alloc, For, ForKind, Program, Scope, Store, walk_stmts
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor, compute, placeholder
from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from ansorpy.rules.presets import CPU
from ansorpy.schedule.lowering.program import lower
from ansorpy.target import Target
from tests import workloads
from tests.run_native import run_native

SHAPE = (12, 32)
Index = tuple[Expr, Expr]


def elementwise(name: str, fn: Callable[..., Expr], *read: Tensor) -> Tensor:
    """``fn`` of the elements of what is read: of matrices, or of a row or a column of them."""

    def element(t: Tensor, i: Expr, j: Expr) -> Expr:
        return t[i, j] if t.shape == SHAPE else t[i, 0] if t.shape[1] == 1 else t[0, j]

    return compute(SHAPE, lambda i, j: fn(*(element(t, i, j) for t in read)), name=name)


def product() -> tuple[list[Tensor], Tensor]:
    *inputs, c = workloads.matmul(*SHAPE, 24, constant=True)
    return inputs, c


def row(name: str) -> Tensor:
    return placeholder((1, SHAPE[1]), name=name, constant=True)


def scale_and_shift() -> list[Tensor]:
    inputs, c = product()
    s, t = row("scale"), row("shift")
    return [*inputs, s, t, elementwise("y", lambda x, a, b: x * a + b, c, s, t)]


def batch_norm_unfolded() -> list[Tensor]:
    inputs, c = product()
    rows = [row(name) for name in ("mean", "var", "gamma", "beta")]
    spread = compute((1, SHAPE[1]), lambda i, j: 1.0 / ap.sqrt(rows[1][i, j] * rows[1][i, j] + 1.0),
                     name="spread")  # fmt: skip
    apart = elementwise("apart", lambda x, m: x - m, c, rows[0])
    scaled = elementwise("scaled", lambda x, s, g: x * s * g, apart, spread, rows[2])
    shifted = elementwise("shifted", lambda x, b: x + b, scaled, rows[3])
    return [*inputs, *rows, elementwise("y", lambda x: ap.maximum(x, 0.0), shifted)]


def swish() -> list[Tensor]:
    inputs, c = product()
    gate = elementwise("gate", lambda x: 1.0 / (1.0 + ap.exp(-x)), c)
    return [*inputs, elementwise("y", lambda x, g: x * g, c, gate)]


def hard_swish() -> list[Tensor]:
    inputs, c = product()
    moved = elementwise("moved", lambda x: x + 3.0, c)
    cut = elementwise("cut", lambda x: ap.minimum(ap.maximum(x, 0.0), 6.0), moved)
    return [*inputs, elementwise("y", lambda x, g: x * g * (1.0 / 6.0), c, cut)]


def gelu_in_steps() -> list[Tensor]:
    inputs, c = product()
    inner = elementwise("inner", lambda x: ap.erf(x * 0.70710678), c)
    half = elementwise("half", lambda x: x * 0.5, c)
    return [*inputs, elementwise("y", lambda h, e: h * (e + 1.0), half, inner)]


def residual_relu() -> list[Tensor]:
    inputs, c = product()
    bias, other = row("bias"), placeholder(SHAPE, name="other")
    added = elementwise("added", lambda x, b: x + b, c, bias)
    total = elementwise("total", lambda x, r: x + r, added, other)
    return [*inputs, bias, other, elementwise("y", lambda x: ap.maximum(x, 0.0), total)]


def leaky_then_residual() -> list[Tensor]:
    inputs, c = product()
    other = placeholder(SHAPE, name="other")
    leaky = elementwise("leaky", lambda x: ap.select(x > 0.0, x, x * 0.1), c)
    return [*inputs, other, elementwise("y", lambda x, r: x + r, leaky, other)]


def squeeze_excite() -> list[Tensor]:
    inputs, c = product()
    gate = placeholder((1, SHAPE[1]), name="gate")
    return [*inputs, gate, elementwise("y", lambda x, g: x / (1.0 + ap.exp(-g)), c, gate)]


EPILOGUES = [
    scale_and_shift, batch_norm_unfolded, swish, hard_swish, gelu_in_steps, residual_relu,
    leaky_then_residual, squeeze_excite,
]  # fmt: skip
each = pytest.mark.parametrize("make", EPILOGUES, ids=lambda make: make.__name__)


def fused(make: Callable[[], list[Tensor]], rng: np.random.Generator) -> list[PlacedSketch]:
    """Placed sketches whose product is computed in the tiles of the output."""
    task = Task(ComputeDAG.of(make()), Target.host(), 2)
    sketches = SketchSampler(task, CPU).draw(8, rng)
    return [s for s in sketches if s.state.stage("C").attach is not None]


def nests_writing(program: Program, name: str) -> int:
    """Outermost loops that store to buffer *name*."""
    found = 0
    for stmt in walk_stmts(program.body):
        writes = [s for s in walk_stmts(stmt) if isinstance(s, Store) and s.buffer.name == name]
        found += isinstance(stmt, Store) and len(writes)
    return found


@each
def test_the_output_is_written_once_and_nothing_in_between_leaves_a_tile(
    make: Callable[[], list[Tensor]], rng: np.random.Generator
) -> None:
    sketches = fused(make, rng)
    assert sketches
    for sketch in sketches:
        table = sketch.sample(32, rng)
        program = lower(sketch.resolve(table[sketch.valid(table)][0])).run
        assert nests_writing(program, "y") == 1
        shared = [s.buffer.name for s in walk_stmts(program.body)
                  if isinstance(s, Alloc) and s.buffer.scope is Scope.WORKSPACE]  # fmt: skip
        assert shared == [], "every intermediate is a tile of one thread"
        outer = [s for s in walk_stmts(program.body)
                 if isinstance(s, For) and s.kind is ForKind.PARALLEL]  # fmt: skip
        assert all(any(x is o for x in walk_stmts(outer[0])) for o in outer), "one parallel nest"


@each
def test_fused_programs_compute_the_definition(
    make: Callable[[], list[Tensor]], rng: np.random.Generator
) -> None:
    dag = ComputeDAG.of(make())
    inputs = {op.name: rng.standard_normal(op.shape).astype(np.float32) for op in dag.args}
    [expected] = run_dag(dag, inputs)
    for sketch in fused(make, rng)[:2]:
        table = sketch.sample(32, rng)
        state = sketch.resolve(table[sketch.valid(table)][0])
        [got] = run_native(lower(state), inputs)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def test_the_root_of_a_variance_is_taken_once_a_channel() -> None:
    inputs, c = product()
    var = placeholder((1, SHAPE[1]), name="var")
    spread = compute((1, SHAPE[1]), lambda i, j: 1.0 / ap.sqrt(var[i, j]), name="spread")
    y = elementwise("y", lambda x, s: x * s, c, spread)
    task = Task(ComputeDAG.of([*inputs, var, y]), Target.host(), 2)
    sketches = SketchSampler(task, CPU).sketches
    assert any(s.stage("C").attach is not None for s in sketches)
    assert not any(s.stage("spread").inlined for s in sketches)


def test_two_readers_that_stay_are_no_epilogue(rng: np.random.Generator) -> None:
    inputs, c = product()
    one = elementwise("one", lambda x: ap.exp(x), c)
    two = elementwise("two", lambda x: x * 2.0, c)
    task = Task(ComputeDAG.of([*inputs, one, two]), Target.host(), 2)
    sketches = SketchSampler(task, CPU).draw(4, rng)
    assert all(s.state.stage("C").attach is None for s in sketches)
