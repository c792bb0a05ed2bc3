"""Recorded schedules are found again as rows of the placed sketches that they were drawn from."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.base import Step
from ansorpy.schedule.steps.records import steps_from_json, steps_to_json
from ansorpy.search.strategies.evolution import crossover
from ansorpy.target import Target
from tests import workloads

SMALL = {
    "matmul": workloads.matmul(24, 10, 12, constant=True),
    "rfactor": workloads.matmul(2, 4, 360),
    "primes": workloads.matmul(7, 13, 11),
    "chain": workloads.double_matmul(12),
    "conv": workloads.conv2d_bn_relu(1, 6, 5, 3, 4),
    "softmax": workloads.softmax(3, 12),
    "winograd": workloads.chosen_winograd(1, 12, 9, 4, 6),
    "attention": workloads.attention(2, 12, 10, 4),
    "scalar": workloads.zero_rank_reduce(12),
}
workload = pytest.mark.parametrize("tensors", SMALL.values(), ids=SMALL.keys())


def sampler(tensors: list[Tensor]) -> SketchSampler:
    return SketchSampler(Task(ComputeDAG.of(tensors), Target.parse("x86-64-v4"), 2))


@workload
def test_schedules_come_back_to_their_rows(tensors: list[Tensor], rng: np.random.Generator) -> None:
    source = sampler(tensors)
    expected: dict[str, list[tuple[str, bytes]]] = {d.name: [] for d in source.definitions}
    recorded: dict[str, list[list[Step]]] = {d.name: [] for d in source.definitions}
    for sketch in source.draw(5, rng):
        table = sketch.sample(40, rng)
        for row in table[sketch.valid(table)][:3]:
            history = sketch.resolve(row).history
            recorded[sketch.definition].append(steps_from_json(steps_to_json(history)))
            expected[sketch.definition].append((sketch.key, row.tobytes()))
    assert any(expected.values())
    for name, keys in expected.items():
        found = {}
        for group in sampler(tensors).recover(name, recorded[name]):
            for row, member in zip(group.table, group.members, strict=True):
                found[int(member)] = (group.sketch.key, row.tobytes())
        assert [found[n] for n in range(len(keys))] == keys


def test_schedules_of_no_sketch_and_rows_no_longer_allowed_are_left_out(
    rng: np.random.Generator,
) -> None:
    source = sampler(SMALL["matmul"])
    state = State.initial(source.definitions[0].dag)
    by_hand, _ = state.split("C", "i", (4, 2))
    assert source.recover("direct", [state.history, by_hand.history]) == []
    sketch = source.draw_one(rng)
    table = sketch.sample(400, rng)
    bad = table[~sketch.valid(table)][:1]
    good = table[sketch.valid(table)][:1]
    histories = [sketch.resolve(row).history for row in (*bad, *good)]
    [found] = source.recover("direct", histories)
    assert found.members.tolist() == [len(bad)]
    assert source.recover("winograd(2x2)", histories) == []


@workload
def test_crossed_rows_keep_the_factors_of_a_split_that_a_stage_follows(
    tensors: list[Tensor], rng: np.random.Generator
) -> None:
    for sketch in sampler(tensors).draw(8, rng):
        table = sketch.sample(64, rng)
        child = crossover(sketch.space, table, table[::-1], rng)
        assert sketch.space.within(child).all()


@workload
def test_numbers_undo_what_resolving_did(tensors: list[Tensor], rng: np.random.Generator) -> None:
    for sketch in sampler(tensors).draw(4, rng):
        for row in sketch.sample(3, rng).tolist():
            values = dict(zip(sketch.columns, row, strict=True))
            for step in sketch.state.history:
                bound = step.resolve(values)
                assert step.resolve(bound.numbers()) == bound
                assert step.skeleton() == bound.skeleton()
