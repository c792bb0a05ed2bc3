"""DrawRfactorFactors: the split an rfactor builds on gets a random divisor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.placement.rfactor_factors import DrawRfactorFactors, rfactor_splits
from ansorpy.rules.sketch.add_rfactor import AddRfactor
from ansorpy.rules.sketch.multi_level_tiling import MultiLevelTiling
from ansorpy.schedule.state import State
from tests import workloads
from tests.rules.asking import CPU, derive, outcomes
from tests.schedule.bounds.test_inference import check

CPU2 = replace(CPU, cores=2)


@pytest.mark.parametrize("variant", [0, 1])
def test_all_divisors_up_to_the_cap_occur(rng: np.random.Generator, variant: int) -> None:
    sketch = derive(AddRfactor(), workloads.min_reduce(5, 24), "B")[variant][0]
    drawn = [DrawRfactorFactors(max_innermost=8).draw(sketch, CPU, rng) for _ in range(80)]
    extents = {s.stage("B.rf").compute.shape[1] for s in drawn}
    inner = {1, 2, 3, 4, 6, 8}
    assert extents == (inner if variant else {24 // f for f in inner})
    assert all(s.stage("B.rf").compute.reduce_axes[0].extent * x == 24
               for s in drawn for x in [s.stage("B.rf").compute.shape[1]])  # fmt: skip


def test_a_fused_reduction_counts_whole() -> None:
    sketch = derive(AddRfactor(), workloads.max_pool2d(1, 4, 4, 1), "pool", CPU2)[0][0]
    assert list(rfactor_splits(sketch).values()) == [4]


def test_other_splits_are_left_open(rng: np.random.Generator) -> None:
    [(tiled, _)] = derive(MultiLevelTiling(), workloads.matmul(8, 8, 8), "C")
    assert DrawRfactorFactors().draw(tiled, CPU, rng) is tiled
    fixed, _ = State.initial(workloads.matmul(8, 8, 8)).split("C", "k", (2,))
    assert rfactor_splits(fixed) == {}


def test_parts_for_threads_are_few_and_more_than_one(rng: np.random.Generator) -> None:
    outer, inner = (made for made, _ in derive(AddRfactor(), workloads.min_reduce(5, 720), "B"))
    rule = DrawRfactorFactors(max_innermost=8, most_parts=6)
    parts = {rule.draw(outer, CPU, rng).stage("B.rf").compute.shape[1] for _ in range(60)}
    assert parts == {2, 3, 4, 5, 6}
    lanes = {rule.draw(inner, CPU, rng).stage("B.rf").compute.shape[1] for _ in range(60)}
    assert lanes == {1, 2, 3, 4, 5, 6, 8}, "the inner part is for vectors"


@pytest.mark.parametrize(
    ("extent", "expected"),
    [(1009, {2, 4, 8}), (2 * 1009, {2, 4, 8, 16}), (101, set()), (1024, {2, 4, 8, 16, 32, 64})],
)
def test_lengths_without_divisors_are_cut_into_uneven_parts(
    extent: int, expected: set[int]
) -> None:
    sketch = derive(AddRfactor(), workloads.min_reduce(3, extent), "B")[0][0]
    rule = DrawRfactorFactors(most_parts=64)
    found = {s.stage("B.rf").compute.shape[1]: s for s in outcomes(rule, sketch, CPU)}
    assert set(found) == (expected or {extent})


def test_uneven_parts_compute_the_definition(rng: np.random.Generator) -> None:
    sampler = SketchSampler(Task(ComputeDAG.of(workloads.min_reduce(3, 1009)), CPU, 2))
    split = [s for s in sampler.every() if any(x.name == "B.rf" for x in s.state.stages)]
    uneven = [s for s in split if s.state.stage("B.rf").compute.shape[-1] in (2, 4, 8)]
    assert uneven
    for sketch in uneven:
        table = sketch.sample(4, rng)
        for row in table[sketch.valid(table)]:
            check(sketch.resolve(row))
