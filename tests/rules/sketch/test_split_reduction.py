"""SplitReduction: blocks share the reduction of a product with few tiles."""

from __future__ import annotations

import numpy as np

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.loops import ForKind
from ansorpy.ir.task import Task
from ansorpy.rules.derive import generate_sketches
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import CUDA
from ansorpy.rules.sketch.split_reduction import SplitReduction
from ansorpy.rules.tiling.levels import factored_axes
from ansorpy.rules.tiling.reduction_parts import ReductionParts
from ansorpy.schedule.stage import SplitRelation
from tests import workloads
from tests.properties.random_elements import random_values
from tests.rules.algorithms.convolutions import convolution
from tests.rules.asking import APPLY, SKIP, ask, derive
from tests.rules.asking import CUDA as GPU
from tests.rules.test_gpu_programs import check

RULE = SplitReduction()


def test_the_outer_part_of_the_longest_axis_is_factored_out() -> None:
    [(state, following)] = derive(RULE, workloads.matmul(64, 32, 2048), "C", GPU)
    assert following == "C.rf"
    assert [axis.extent for axis in state.stage("C.rf").compute.axes] == [32, 64, 32]
    assert factored_axes(state, state.stage("C.rf")) == {"k.0"}
    assert ask(RULE, state, "C.rf", GPU).reason == "its reduction is already split"


def test_when_it_does_not_apply() -> None:
    for tensors, stage, reason in (
        (workloads.matmul(64, 64, 64), "C", "a short reduction"),
        (workloads.matmul(4096, 4096, 512), "C", "it has enough work for"),
        (workloads.matmul(960, 960, 512), "C", "it has enough work for"),
        (workloads.min_reduce(4, 4096), "B", "a short reduction"),
        (workloads.min_reduce(400, 1 << 15), "B", "it has enough work for"),
        (workloads.matmul(64, 64, 509), "C", "no number of equal parts divides"),
        (workloads.max_pool2d(1, 8, 8, 4), "pad", "it is not a reduction"),
    ):
        verdict = ask(RULE, tensors, stage, GPU)
        assert verdict.answer is SKIP
        assert verdict.reason.startswith(reason)
    assert ask(RULE, workloads.matmul(64, 32, 2048), "C", GPU).answer is APPLY


def test_the_parts_are_blocks_of_a_tiled_product() -> None:
    sketches = generate_sketches(ComputeDAG.of(workloads.matmul(64, 32, 2048)), GPU, CUDA)
    split = [s for s in sketches if any(stage.name == "C.rf.local" for stage in s.stages)]
    assert len(split) == 1
    relations = split[0].stage("C.rf").relations
    splits = {r.parent: r.factors for r in relations if isinstance(r, SplitRelation)}
    assert splits["k.0"] == ((1,), (1,), (1,))


def test_parts_of_one_long_sum_are_blocks_and_added_up_by_threads() -> None:
    tensors = workloads.min_reduce(2, 1 << 15)
    [(state, following)] = derive(RULE, tensors, "B", GPU)
    assert following == "B"
    assert ask(RULE, state, "B", GPU).reason == "its reduction is already split"
    sketches = generate_sketches(ComputeDAG.of(tensors), GPU, CUDA)
    shared = [
        [it.annotation is ForKind.THREAD_X for it in s.stage("B").iters].count(True)
        + [it.annotation is ForKind.THREAD_X for it in s.stage("B.rf").iters].count(True)
        for s in sketches
        if any(stage.name == "B.rf" for stage in s.stages)
    ]
    assert sorted(shared) == [1, 2], "no single thread reads a part of a row"


def test_what_follows_is_done_where_the_parts_are_added_up() -> None:
    tensors = convolution((7, 7), (3, 3), 512, 64, pad=1)
    [(state, following)] = derive(RULE, tensors, "conv", GPU)
    assert following == "conv.rf"
    attach = state.stage("conv").attach
    assert attach is not None
    assert (attach.stage, attach.iter) == ("relu", "i3")


def test_of_other_sums_the_outermost_long_axis_is_shared() -> None:
    """This also holds where no number of parts divides the axis: 127 is a prime number."""
    tensors = workloads.matrix_norm(1, 127, 130)
    for most, parts in ((256, 127), (50, 32)):
        rule = SplitReduction(ReductionParts(long=100, least_sum=128, most_sums=most))
        [(state, _)] = derive(rule, tensors, "squares", GPU)
        made = state.stage("squares.rf").compute
        assert [axis.extent for axis in made.axes] == [parts, 1]


def test_parts_that_do_not_divide_compute_the_sum(rng: np.random.Generator) -> None:
    dag = ComputeDAG.of(workloads.matrix_norm(1, 263, 67))
    data = random_values(dag, rng)
    expected = run_dag(dag, data, dtype=DType.FLOAT64)
    sampler = SketchSampler(Task(dag, GPU, 1))
    parts = set()
    for sketch in sampler.every():
        names = {stage.name: stage for stage in sketch.state.stages}
        if "squares.rf" not in names:
            continue
        table = sketch.sample(16, rng)
        check(sketch.resolve(table[sketch.valid(table)][0]), data, expected)
        parts.add(names["squares.rf"].compute.axes[0].extent)
    assert parts == {8, 16, 30}
