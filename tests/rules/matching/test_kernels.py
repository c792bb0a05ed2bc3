"""Kernels of GPU programs: each has the style that its sketch rule has recorded."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.loops import ForKind
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.derive import generate_sketches
from ansorpy.rules.matching.kernels import kernels, kernels_in, with_kernel_style
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import ANSOR_CUDA, CPU, CUDA, Preset
from ansorpy.schedule.stage import KernelStyle
from ansorpy.schedule.state import State
from tests import workloads
from tests.rules.asking import CPU as CPU_TARGET
from tests.rules.asking import CUDA as GPU
from tests.rules.gpu_workloads import WORKLOADS
from tests.tensor_cores import matmul as half_matmul

PLAIN, TILES, CORES = KernelStyle.PLAIN, KernelStyle.THREAD_TILES, KernelStyle.TENSOR_CORES
ROWS, SHARED_SUMS = KernelStyle.ROWS, KernelStyle.CROSS_THREAD_REDUCTION


def styles(tensors: list[Tensor], preset: Preset) -> set[KernelStyle]:
    """The styles of the kernels of all sketches."""
    sketches = generate_sketches(ComputeDAG.of(tensors), GPU, preset)
    return {kernel.kernel_style for sketch in sketches for kernel in kernels(sketch)}


@pytest.mark.parametrize(
    ("tensors", "preset", "expected"),
    [
        (workloads.matmul(61, 64, 67), CUDA, {TILES}),
        (workloads.matmul(61, 64, 67), ANSOR_CUDA, {TILES}),
        (half_matmul("float16", 64, 32, 16), CUDA, {TILES, CORES}),
        (workloads.softmax(7, 129), ANSOR_CUDA, {SHARED_SUMS, PLAIN}),
        (workloads.softmax(7, 129), CUDA, {SHARED_SUMS, ROWS, PLAIN}),
        (WORKLOADS["attention"], CUDA, {ROWS, TILES, PLAIN}),
        (WORKLOADS["gelu"], CUDA, {PLAIN}),
        (workloads.max_pool2d(1, 9, 9, 3), CUDA, {PLAIN}),
    ],
    ids=["matmul", "ansor_matmul", "half", "ansor_softmax", "softmax", "attention", "gelu", "pool"],
)
def test_the_rule_that_chooses_a_style_records_it(
    tensors: list[Tensor], preset: Preset, expected: set[KernelStyle]
) -> None:
    assert styles(tensors, preset) == expected


def test_kernels_of_other_backends_have_none() -> None:
    for sketch in generate_sketches(ComputeDAG.of(workloads.matmul(64, 64, 64)), CPU_TARGET, CPU):
        assert not any("kernel_style" in step.call() for step in sketch.history)


def test_the_style_is_that_of_the_whole_kernel() -> None:
    state = State.initial(workloads.softmax(5, 31)).compute_at("sum", "norm", "i0")
    assert state.root_of("sum").name == "norm"
    made = with_kernel_style(state, "sum", SHARED_SUMS)
    assert [kernel.name for kernel in kernels_in(made, SHARED_SUMS)] == ["norm"]
    assert with_kernel_style(made, "sum", SHARED_SUMS) is made


def test_bound_loops_are_those_of_the_style(rng: np.random.Generator) -> None:
    """What the loops of an annotated kernel show agrees with the style that was recorded."""
    cases = [half_matmul("float16", 64, 32, 16), WORKLOADS["softmax"], WORKLOADS["attention"]]
    for tensors in cases:
        sampler = SketchSampler(Task(ComputeDAG.of(tensors), GPU, 1), CUDA)
        for sketch in sampler.draw(6, rng):
            for kernel in kernels(sketch.state):
                kinds = {it.annotation for it in kernel.iters}
                style = kernel.kernel_style
                assert (ForKind.VTHREAD in kinds) is (style is TILES)
                assert (ForKind.THREAD_Z in kinds) is (style is CORES)
                assert any(kind.is_bound for kind in kinds)
