"""LimitCodeSize: code size is predicted from the table, and rows with too much are rejected."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from ansorpy.codegen.llvm.emit.program import emit_llvm
from ansorpy.ir import builders as b
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Expr
from ansorpy.ir.loops import ForKind
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor, compute, placeholder
from ansorpy.rules.annotation.limit_code_size import LimitCodeSize, instructions
from ansorpy.rules.annotation.unroll import AnnotateUnroll
from ansorpy.rules.annotation.vectorize import AnnotateVectorize
from ansorpy.rules.matching.relations import is_input
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.sketch.multi_level_tiling import MultiLevelTiling
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from ansorpy.schedule.tables.size import as_array
from tests import workloads
from tests.rules.asking import CPU, derive

WORKLOADS = {
    "matmul": workloads.matmul(24, 40, 12),
    "conv": workloads.conv2d_bn_relu(1, 9, 7, 5, 20),
    "softmax": workloads.softmax(2, 11, 37),
    "winograd": workloads.chosen_winograd(2, 7, 6, 5, 18),
    "attention": workloads.attention(2, 6, 9, 16),
}


@pytest.mark.parametrize("tensors", WORKLOADS.values(), ids=WORKLOADS.keys())
def test_a_column_equals_each_program_alone(
    tensors: list[Tensor], rng: np.random.Generator
) -> None:
    """The table predicts the same as the loops of each resolved program."""
    task = Task(ComputeDAG.of(tensors), CPU, 2)
    for sketch in SketchSampler(task).draw(3, rng):
        table, space = sketch.sample(6, rng), sketch.space
        bounds = Bounds(space.state, space.values(table))
        for stage in space.state.stages:
            if is_input(space.state, stage) or stage.inlined:
                continue
            column = instructions(bounds, stage, CPU)
            values = as_array(column, len(table))
            for row, predicted in zip(table, values, strict=True):
                bound = space.resolve(row)
                alone = instructions(Bounds(bound, {}), bound.stage(stage.name), CPU)
                assert alone == predicted


def unrolled_matmul(limit: int) -> Space:
    [(state, _)] = derive(MultiLevelTiling(), workloads.matmul(64, 64, 64), "C")
    space = AnnotateUnroll(max_steps=(0, 16, 512)).declare(Space(state), CPU)
    space = AnnotateVectorize(always_innermost=True).declare(space, CPU)
    return LimitCodeSize(limit).declare(space, CPU)


def test_rows_with_more_code_are_refused(rng: np.random.Generator) -> None:
    """The rejected rows are those with long emitted text."""
    space = unrolled_matmul(limit=400)
    table = space.sample(400, rng)
    valid = space.valid(table)
    assert 0 < valid.sum() < len(table)
    lines = {
        held: [emitted_lines(space.resolve(row)) for row in table[valid == held][:5]]
        for held in (True, False)
    }
    assert max(lines[True]) < 1200
    assert np.median(lines[True]) < np.median(lines[False])


def emitted_lines(state: State) -> int:
    return emit_llvm(lower(state).run, CPU, "kernel").count("\n")


def test_a_body_longer_than_the_limit_may_stand_once(rng: np.random.Generator) -> None:
    y: Tensor = placeholder((64, 1024), name="X")
    tensors = [y]
    for n in range(60):
        y = compute((64, 1024), partial(_activated, y), name=f"Y{n}")
    sketch = SketchSampler(Task(ComputeDAG.of([*tensors, y]), CPU, 2)).draw_one(rng)
    table = sketch.sample(200, rng)
    space, valid = sketch.space, sketch.valid(table)
    assert 0 < valid.sum() < len(table)
    [stage] = [s for s in space.state.stages if not (s.is_placeholder or s.inlined)]
    codes = as_array(instructions(Bounds(space.state, space.values(table)), stage, CPU), len(table))
    assert set(codes[valid]) == {codes.min()} and codes.min() > LimitCodeSize().most


def test_what_a_definition_unrolls_may_stand_once(rng: np.random.Generator) -> None:
    """Winograd in TVM's form: 1296 copies of a body, most of which fold."""
    task = Task(ComputeDAG.of(workloads.winograd(1, 8, 8, 8, 8)), CPU, 2)
    sketches = SketchSampler(task)
    for number in range(len(sketches.sketches)):
        sketch = sketches.place(number, rng)
        assert sketch.valid(sketch.sample(64, rng)).any()


def _activated(y: Tensor, i: Expr, j: Expr) -> Expr:
    return b.sigmoid(y[i, j])


def test_what_no_decision_changes_is_not_refused() -> None:
    """A stage whose length no decision affects is not limited: every row would be rejected."""
    state = State.initial(workloads.matmul(4, 4, 4))
    i, j, k = state.stage("C").iters
    for it in (i, j, k):
        state = state.unroll("C", it)
    assert all(it.annotation is ForKind.UNROLLED for it in state.stage("C").iters)
    stage = state.stage("C")
    assert instructions(Bounds(state, {}), stage, CPU) == 64 * 4
    space = LimitCodeSize(100).declare(Space(state), CPU)
    assert space.valid(np.zeros((2, 0), dtype=np.int64)).all()


def test_vectors_beyond_the_straight_ones_are_a_loop() -> None:
    """Elements of a long vector loop do not count: the generator loops over its vectors."""
    sizes = []
    for n in (8, 128, 8 * 1024):
        state = State.initial(workloads.matmul(1, n, 1))
        i, j, k = state.stage("C").iters
        state = state.reorder("C", [i, k, j]).vectorize("C", [j])
        sizes.append(instructions(Bounds(state, {}), state.stage("C"), CPU))
    assert sizes[1] == sizes[2] == 16 * sizes[0]
