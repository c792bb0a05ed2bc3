"""Placed sketches: drawn, annotated, sampled, mutated; every program computes the definition."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import ANSOR_CPU, ANSOR_CUDA, CPU, CUDA, Preset, preset_for
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_from_json, steps_to_json
from ansorpy.schedule.tables.nest import build_nest
from ansorpy.target import Target
from tests import workloads

SMALL = {
    "matmul": workloads.matmul(12, 10, 6, constant=True),
    "deep_matmul": workloads.matmul(2, 4, 36),
    "primes": workloads.matmul(7, 13, 11),
    "chain": workloads.double_matmul(6),
    "conv": workloads.conv2d_bn_relu(1, 6, 5, 3, 4),
    "pool": workloads.max_pool2d(1, 5, 4, 3),
    "softmax": workloads.softmax(3, 12),
    "winograd": workloads.winograd(1, 5, 4, 2, 2),
    "scalar": workloads.zero_rank_reduce(12),
}
MOST = 400
"""Placed sketches of a definition that are listed; most have fewer."""
workload = pytest.mark.parametrize("tensors", SMALL.values(), ids=SMALL.keys())
preset_and_target = pytest.mark.parametrize(
    ("preset", "target"), [(ANSOR_CPU, "x86-64-v3"), (CPU, "x86-64-v3"), (CUDA, "sm_80")]
)


def sampler(tensors: list[Tensor], preset: Preset, target: str = "x86-64-v3") -> SketchSampler:
    return SketchSampler(Task(ComputeDAG.of(tensors), Target.parse(target), 2), preset)


@workload
@preset_and_target
def test_rows_lie_in_the_space_before_and_after_mutation(
    tensors: list[Tensor], preset: Preset, target: str, rng: np.random.Generator
) -> None:
    for sketch in sampler(tensors, preset, target).draw(2, rng):
        table = sketch.sample(24, rng)
        assert table.shape == (24, len(sketch.columns))
        mutated = sketch.mutate(table, rng)
        build_nest(sketch.state, sketch.space.values(mutated))
        for rows in (table, mutated):
            valid = rows[sketch.valid(rows)]
            assert all(sketch.space.contains(row) for row in valid[:6])


@workload
def test_a_bound_row_is_closed_and_its_history_survives_a_record(
    tensors: list[Tensor], rng: np.random.Generator
) -> None:
    for sketch in sampler(tensors, CPU).draw(4, rng):
        state = sketch.resolve(sketch.sample(1, rng)[0])
        assert not state.is_open
        steps = steps_from_json(steps_to_json(state.history))
        assert State.replay(state.definition, steps).text() == state.text()


def test_several_gives_every_sketch_a_turn_and_no_sketch_twice(
    rng: np.random.Generator,
) -> None:
    found = sampler(workloads.softmax(4, 64), ANSOR_CPU).draw(12, rng)
    assert {s.number for s in found} == set(range(9))
    assert len({s.key for s in found}) == len(found) == 12
    few = sampler(workloads.matmul(64, 64, 64), ANSOR_CPU).draw(12, rng)
    assert len(few) == 3, "nothing but the sketch can differ"


def test_the_same_seed_draws_the_same() -> None:
    def keys() -> list[str]:
        rng = np.random.default_rng(5)
        return [s.key for s in sampler(SMALL["conv"], CPU).draw(6, rng)]

    assert keys() == keys()


def test_a_neighbour_adopts_rows(rng: np.random.Generator) -> None:
    draws = [sampler(SMALL["conv"], CPU).place(2, rng) for _ in range(10)]
    moved = [(s, n) for s in draws if (n := s.neighbour(rng)) is not None]
    assert moved
    for sketch, neighbour in moved:
        assert neighbour.key != sketch.key
        table = neighbour.adopt(sketch, sketch.sample(8, rng), rng)
        assert table.shape == (8, len(neighbour.columns))


def test_the_threads_of_the_task_decide_what_is_parallel(rng: np.random.Generator) -> None:
    task = Task(ComputeDAG.of(SMALL["matmul"]), Target.parse("x86-64-v3"), 1)
    for sketch in SketchSampler(task, CPU).draw(3, rng):
        assert all(stage.parallel is None for stage in sketch.state.stages)


def test_presets_by_kind_of_target() -> None:
    assert preset_for(Target.parse("sm_80")) is CUDA
    assert preset_for(Target.parse("sm_80"), "ansor") is ANSOR_CUDA
    assert preset_for(Target.parse("x86-64-v4")) is CPU
    assert preset_for(Target.parse("x86-64-v4"), "ansor") is ANSOR_CPU


@preset_and_target
@pytest.mark.parametrize("name", ["pool", "softmax", "deep_matmul"])
def test_every_sketch_that_can_be_drawn_is_listed_once(
    name: str, preset: Preset, target: str
) -> None:
    source = sampler(SMALL[name], preset, target)
    listed = [sketch.key for sketch in islice(source.every(), MOST)]
    assert len(set(listed)) == len(listed)
    drawn = [source.draw_one(np.random.default_rng(seed)).key for seed in range(30)]
    assert set(drawn) <= set(listed) or len(listed) == MOST


def test_the_sketches_used_last_are_kept(rng: np.random.Generator) -> None:
    source = sampler(SMALL["conv"], CPU)
    first = source.draw(6, np.random.default_rng(3))
    again = source.draw(6, np.random.default_rng(3))
    assert len(first) > 3 and all(one is other for one, other in zip(first, again, strict=True))
    [recovered] = source.recover(
        first[0].definition, [first[0].resolve(first[0].sample(1, rng)[0]).history]
    )
    assert recovered.sketch is first[0]
    source.most_kept = 2
    source.draw(6, np.random.default_rng(3))
    other = source.draw(6, np.random.default_rng(3))
    assert [s.key for s in other] == [s.key for s in first]
    assert not any(one is two for one, two in zip(first[:3], other[:3], strict=True))


def test_neighbours_are_kept_like_what_is_drawn(rng: np.random.Generator) -> None:
    source = sampler(workloads.conv2d_bn_relu(1, 6, 5, 3, 4), CPU)
    known = {s.key: s for s in source.draw(20, rng)}
    met = 0
    for sketch in list(known.values()):
        moved = sketch.neighbour(rng)
        if moved is not None and moved.key in known:
            assert moved is known[moved.key]
            met += 1
    assert met
