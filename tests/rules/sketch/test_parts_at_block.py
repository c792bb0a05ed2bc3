"""PartsAtBlock: the parts of attention and their combination at blocks of rows (CPU)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import booleans, integers, sampled_from

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.loops import Alloc, Scope, walk_stmts
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from ansorpy.rules.presets import ANSOR_CPU
from ansorpy.rules.presets import CPU as DEFAULT
from ansorpy.rules.sketch.parts_at_block import PartsAtBlock
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests import workloads
from tests.budget import examples
from tests.properties.random_elements import random_values
from tests.properties.test_schedules import interpreted
from tests.rules.algorithms.parted import parted
from tests.rules.algorithms.weighted_sums import attends, grouped_heads_attend
from tests.rules.asking import ALONE, CPU, SKIP, ask, derive
from tests.rules.attentions import heads_attend

RULE = PartsAtBlock()

BLOCKED = """\
for h in 0..2
  for i.0 in 0..?
    for r0 in 0..2
      for r1.0 in 0..?
        for block in 0..3
          for h in 0..2
            for block in 0..3
              for j.0 in 0..?
                for i.0 in 0..?
                  for d in 0..16  # reduce
                    for i.1 in 0..?
                      for j.1 in 0..?
                        S.part[h, i, block, j] += ...
          for r0 in 0..2
            for r1 in 0..24
              for block in 0..3
                for j in 0..32  # reduce
                  top.part[r0, r1, block] max= ...
          for r0 in 0..2
            for r1 in 0..24
              for block in 0..3
                for j0.0 in 0..?
                  for j0.1 in 0..?
                    E.part[r0, r1, block, j0] = ...
          for r0 in 0..2
            for block in 0..3
              for o0.0 in 0..?
                for r1.0 in 0..?
                  for j in 0..32  # reduce
                    for r1.1 in 0..?
                      for o0.1 in 0..?
                        P.part[r0, r1, block, o0] += ...
          for r0 in 0..2
            for r1 in 0..24
              for block in 0..3
                for j in 0..32  # reduce
                  total.part[r0, r1, block] += ...
          for r1.1 in 0..?
            for r1.2 in 0..?
              for o0.0 in 0..?
                for o0.1 in 0..?
                  P.parts[r0, r1, block, o0] = ...
    for r0 in 0..2
      for r1 in 0..24
        for b in 0..3  # reduce
          top.peak[r0, r1] max= ...
    for r0 in 0..2
      for r1 in 0..24
        for block in 0..3
          top.share[r0, r1, block] = ...
    for h in 0..2
      for i in 0..24
        for j in 0..16
          for b in 0..3  # reduce
            P[h, i, j] += ...
    for h in 0..2
      for i in 0..24
        for b in 0..3  # reduce
          total[h, i] += ...
    for i.1 in 0..?
      for j in 0..16
        out[h, i, j] = ..."""


def test_the_scores_of_one_block_of_keys_are_kept_at_a_time() -> None:
    state = State.initial(parted(workloads.attention(2, 24, 96, 16), 32))
    inside, apart = (state for state, _ in derive(RULE, state, "out"))
    assert inside.text().split("placeholder V\n")[1] == BLOCKED
    assert apart.stage("P.parts").attach is None
    hosts = {s.name: s.attach.stage for s in apart.stages if s.attach is not None}
    assert hosts["S.part"] == hosts["P.part"] == "P.parts" and hosts["total"] == "out"


def test_blocks_are_rows_that_share_keys() -> None:
    """Heads of the result are inside rows, but they share nothing."""
    state = State.initial(parted(heads_attend(2, 9, 64, 3, 4), 16))
    inside, _ = (state for state, _ in derive(RULE, state, "attention"))
    assert [it.name for it in inside.stage("attention").iters] == ["i0", "i2", "i1.0", "i1.1", "i3"]


def test_a_single_row_is_computed_in_parallel_parts() -> None:
    """No block of the result needs only a part of the keys."""
    state = State.initial(parted(attends(1, 64, 5), 16))
    [(apart, _)] = derive(RULE, state, "out")
    assert apart.stage("mixed.parts").iters[1].name == "block"


@pytest.mark.parametrize(
    ("tensors", "reason"),
    [
        (workloads.attention(2, 6, 9, 16), "no stage has all results"),
        (workloads.softmax(4, 8), "no stage has all results"),
        (workloads.matmul(8, 8, 8), "no stage has all results"),
    ],
)
def test_other_definitions_are_left_alone(tensors: list[Tensor], reason: str) -> None:
    verdict = ask(RULE, tensors, ComputeDAG.of(tensors).outputs[0].name)
    assert verdict.answer is SKIP and reason in verdict.reason


def test_nothing_else_is_tried() -> None:
    state = State.initial(parted(workloads.attention(2, 6, 9, 16), 4))
    assert ask(RULE, state, "out").answer is ALONE
    verdict = ask(RULE, state, "total")
    assert verdict.answer is SKIP and "not the last stage" in verdict.reason


def drawn(dag: ComputeDAG, rng: np.random.Generator) -> PlacedSketch:
    return SketchSampler(Task(dag, CPU, 2), DEFAULT).draw_one(rng)


@examples(30)
@given(
    keys=sampled_from([2, 7, 16, 17, 33]), rows=sampled_from([1, 5, 12]), masks=booleans(),
    heads=sampled_from([1, 3]), seed=integers(0, 2**31),
)  # fmt: skip
def test_random_programs_compute_attention(
    keys: int,
    rows: int,
    masks: bool,
    heads: int,
    seed: int,  # noqa: FBT001
) -> None:
    rng = np.random.default_rng(seed)
    shapes = ((1, heads, 1, keys), (2, 1, rows, keys)) if masks else ()
    tensors = heads_attend(2, rows, keys, heads, 5, masks=shapes, guarded=masks)
    dag = ComputeDAG.of(tensors)
    data = random_values(dag, rng)
    [want] = run_dag(dag, data, dtype=DType.FLOAT64)
    sketch = drawn(parted(tensors, 8), rng)
    table = sketch.sample(32, rng)
    state = sketch.resolve(table[sketch.valid(table)][0])
    state.check()
    [got] = interpreted(lower(state), data)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 7])
def test_heads_that_share_keys_are_rows(rows: int, rng: np.random.Generator) -> None:
    tensors = grouped_heads_attend(rows, 33, 2, "float16")
    dag = ComputeDAG.of(tensors)
    data = random_values(dag, rng)
    [want] = run_dag(dag, data, dtype=DType.FLOAT64)
    sketch = drawn(parted(tensors, 16), rng)
    table = sketch.sample(32, rng)
    [got] = interpreted(lower(sketch.resolve(table[sketch.valid(table)][0])), data)
    np.testing.assert_allclose(got.astype(float), want, atol=4 * DType.FLOAT16.epsilon)


def test_no_square_of_scores_reaches_memory(rng: np.random.Generator) -> None:
    rows = 64
    sketch = drawn(parted(workloads.attention(2, rows, 96, 16), 32), rng)
    table = sketch.sample(32, rng)
    program = lower(sketch.resolve(table[sketch.valid(table)][0])).run
    shared = [s.buffer for s in walk_stmts(program.body) if isinstance(s, Alloc)]
    kept = {b.name for b in shared if b.scope is Scope.WORKSPACE}
    assert kept <= {"P.parts", "K.local"}


def test_preset_ansor_does_not_have_it() -> None:
    assert not any(isinstance(rule, PartsAtBlock) for rule in ANSOR_CPU.sketch)
