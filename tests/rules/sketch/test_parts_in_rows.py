"""PartsInRows: attention as a kernel for blocks of keys and one that combines them (CUDA)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import integers, sampled_from

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.loops import Alloc, Scope, walk_stmts
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.matching.kernels import kernels
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import ANSOR_CUDA, CUDA
from ansorpy.rules.sketch.parts_in_rows import PartsInRows
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests import workloads
from tests.budget import examples
from tests.faults import planted_races
from tests.properties.random_elements import random_values
from tests.rules.algorithms.parted import parted
from tests.rules.asking import ALONE, SKIP, ask, derive
from tests.rules.asking import CUDA as GPU
from tests.rules.attentions import heads_attend
from tests.rules.test_gpu_programs import check

RULE = PartsInRows()


def programs(dag: ComputeDAG, n: int, rng: np.random.Generator) -> list[State]:
    """At most *n* random programs of the definition, mutated ones among them."""
    sketch = SketchSampler(Task(dag, GPU, 1), CUDA).place(0, rng)
    table = sketch.sample(128, rng)
    both = np.concatenate((sketch.mutate(table, rng), table))
    return [sketch.resolve(row) for row in both[sketch.valid(both)][:n]]


def test_one_kernel_makes_the_parts_and_one_combines_them() -> None:
    state = State.initial(parted(workloads.attention(2, 24, 96, 16), 32))
    assert ask(RULE, state, "out", GPU).answer is ALONE
    [(made, following)] = derive(RULE, state, "out", GPU)
    assert following == ""
    assert [stage.name for stage in kernels(made)] == ["P.parts", "out"]
    hosts = {s.name: s.attach.stage for s in made.stages if s.attach is not None}
    assert {n for n, host in hosts.items() if host == "out"} == {
        "top.peak", "top.share", "total", "P",
    }  # fmt: skip
    assert hosts["P.part.local"] == "P.part" and hosts["P.part"] == "P.parts"


def test_a_single_part_needs_no_special_case(rng: np.random.Generator) -> None:
    tensors = workloads.attention(1, 5, 9, 4)
    dag = ComputeDAG.of(tensors)
    data = random_values(dag, rng)
    [state] = programs(parted(tensors, 16, tiled=True), 1, rng)
    check(state, data, run_dag(dag, data, dtype=DType.FLOAT64))


@pytest.mark.parametrize("tensors", [workloads.attention(2, 6, 9, 16), workloads.softmax(4, 8)])
def test_other_definitions_are_left_alone(tensors: list[Tensor]) -> None:
    verdict = ask(RULE, tensors, ComputeDAG.of(tensors).outputs[0].name, GPU)
    assert verdict.answer is SKIP and "no stage has all results" in verdict.reason


@examples(15)
@given(
    keys=sampled_from([17, 7, 16, 33]), rows=sampled_from([2, 7, 12]),
    masks=sampled_from([True, False]), heads=sampled_from([3, 1]), seed=integers(0, 2**31),
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
    expected = run_dag(dag, data, dtype=DType.FLOAT64)
    for state in programs(parted(tensors, 8, tiled=True), 1, rng):
        check(state, data, expected)


@pytest.mark.parametrize("keys", [96, 97])
def test_only_parts_reach_global_memory(keys: int, rng: np.random.Generator) -> None:
    """Tiles of keys are a block's at most, also where blocks do not divide them."""
    [state] = programs(parted(workloads.attention(2, 24, keys, 16), 32, tiled=True), 1, rng)
    program = lower(state).run
    kept = [s.buffer for s in walk_stmts(program.body) if isinstance(s, Alloc)]
    assert {b.name for b in kept if b.scope is Scope.WORKSPACE} == {"P.parts"}
    tiles = [b for b in kept if b.name in ("K.shared", "K.part.shared")]
    assert tiles and all(keys not in b.shape for b in tiles)


def test_missing_barriers_are_found(rng: np.random.Generator) -> None:
    [state] = programs(parted(workloads.attention(1, 6, 24, 8), 8), 1, rng)
    assert planted_races(lower(state).run, rng) >= {"top.part", "top.peak"}


def test_preset_ansor_does_not_have_it() -> None:
    assert not any(isinstance(rule, PartsInRows) for rule in ANSOR_CUDA.sketch)
