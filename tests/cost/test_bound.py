"""The least time of a definition: below every program of it, and above what rules it out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ansorpy.cost.analytic.cpu.machine import MachineModel
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.bound import handover_seconds, least_seconds
from ansorpy.cost.programs import Programs
from ansorpy.ir.builders import select, sum
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Cast, Expr
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.rules.algorithms.clipped import Clipped
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.target import Target
from tests import workloads
from tests.rules.algorithms.convolutions import convolution

TARGET = Target.parse("x86-64-v4")
MACHINE = MachineModel.of(TARGET)


def task(tensors: list[Tensor], threads: int = 2, cold: bool = False) -> Task:
    return Task(
        ComputeDAG.of(tensors),
        TARGET,
        threads,
        reuse_distance_bytes=4 * TARGET.l3_bytes if cold else 0,
    )


def bound(tensors: list[Tensor], threads: int = 2, cold: bool = False) -> float:
    made = task(tensors, threads, cold)
    return least_seconds(made, made.dag)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_matmul_runs_at_peak_at_best(threads: int) -> None:
    vectors = 61 * 67 * 71 / (TARGET.vector_bits / 32)
    expected = vectors / MACHINE.vector_ops_per_cycle / MACHINE.clock_hz / threads
    assert bound(workloads.matmul(61, 67, 71), threads) == pytest.approx(expected)


def test_narrow_operands_may_be_packed() -> None:
    def product(bits: str) -> list[Tensor]:
        a, b = (placeholder((64, 64), name=n, dtype=bits) for n in "AB")
        k = reduce_axis(64, name="k")
        c = compute(
            (64, 64), lambda i, j: sum(Cast(DType.INT32, a[i, k] * b[k, j]), axis=k), name="C"
        )
        return [a, b, c]

    assert bound(product("int8")) == bound(product("int32")) / 4


def test_what_a_condition_may_skip_costs_nothing() -> None:
    a, k = placeholder((64, 64), name="A"), reduce_axis(64, name="k")

    def least(condition: Expr) -> float:
        c = compute((64,), lambda i: sum(select(condition, a[i, k], 0.0), axis=k), name="C")
        return bound([a, c])

    assert least((k % 2).equal(0)) == least(k >= 0) / 2 > 0
    assert least(a[0, k] >= 0.0) == 0


def test_taps_that_are_skipped_are_not_counted() -> None:
    conv = convolution((13, 13), (3, 3), 64, 64, pad=1)
    [clipped] = Clipped().rewrite(ComputeDAG.of(conv), TARGET)
    share = 1 - 2 / (13 * 3)  # of the rows of taps: the first and the last meet the padding once
    whole = bound(conv)
    assert least_seconds(task(conv), clipped.dag) == pytest.approx(share * whole)


def test_rows_of_a_table_are_not_the_table() -> None:
    table = placeholder((1 << 20, 64), name="T", constant=True)
    rows = placeholder((10,), "int64", name="rows")
    found = compute((10, 64), lambda i, j: table[rows[i], j], name="R")
    assert bound([table, rows, found], cold=True) <= 10 * 64 * 8 / MACHINE.dram_bytes_per_s


def test_what_exceeds_the_second_level_comes_from_the_last() -> None:
    a = placeholder((2048, 1024), name="A")
    twice = [a, compute((2048, 1024), lambda i, j: a[i, j] * 2.0, name="B")]
    beyond = 2 * 2048 * 1024 * 4 - 2 * 2 * TARGET.l2_bytes
    expected = beyond / (2 * MACHINE.l3_bandwidth * MACHINE.clock_hz)
    assert bound(twice) == pytest.approx(expected)


def test_cold_constants_come_from_memory() -> None:
    vector = workloads.matmul(1, 512, 512, constant=True)
    expected = 512 * 512 * 4 / MACHINE.dram_bytes_per_s
    assert bound(vector, cold=True) == pytest.approx(expected)
    assert bound(vector) < expected / 2


def test_inputs_beyond_twice_the_cache_come_from_memory_too() -> None:
    a, k = placeholder((4096, 8192), name="A"), reduce_axis(8192, name="k")
    rows = [a, compute((4096,), lambda i: sum(a[i, k], axis=k), name="S")]
    small = Task(ComputeDAG.of(rows), replace(TARGET, l3_bytes=1 << 20), 2)
    beyond = 4096 * 8192 * 4 - (2 << 20)
    assert least_seconds(small, small.dag) >= beyond / MACHINE.dram_bytes_per_s


def test_no_program_is_predicted_below_its_bound(rng: np.random.Generator) -> None:
    made = task(convolution((14, 13), (3, 3), 61, 67, pad=1))
    sampler = SketchSampler(made)
    bounds = {d.name: least_seconds(made, d.dag) for d in sampler.definitions}
    assert len(bounds) > 1 and min(bounds, key=lambda name: bounds[name]) != "direct"
    for sketch in sampler.draw(8, rng):
        table = sketch.sample(256, rng)
        rows = table[sketch.valid(table)]
        seconds = 1 / AnalyticModel().predict(made, Programs(sketch.space, rows))
        assert seconds.min() >= bounds[sketch.definition]


def test_what_the_cores_caches_cannot_hand_over_comes_from_memory() -> None:
    def handed_over(rows: int) -> float:
        x = placeholder((rows, 1024), name="x")
        return handover_seconds(
            task([x, compute((rows, 1024), lambda i, j: x[i, j] * 2.0, name="y")])
        )

    held = int(2 * MACHINE.l2_bytes // (2 * 4096))
    assert handed_over(held) == 0.0
    beyond = 2 * 4096 * (held + 1001) - 2 * MACHINE.l2_bytes
    assert handed_over(held + 1001) == pytest.approx(beyond / MACHINE.dram_bytes_per_s)
