"""Programs as sequences of decisions: every program is reached once, and only valid ones are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.search.population import SketchSource
from ansorpy.search.prefix import Prefix, begin
from benchmarks.spaces.grid_source import GridSource
from tests.benchmarks.spaces.grids import grid_of
from tests.search.tasks import dense_relu, matmul, scale


def programs(prefix: Prefix) -> Iterator[Prefix]:
    if not prefix.options:
        yield prefix
    for option in prefix.options:
        yield from programs(option)


def keys(source: SketchSource) -> list[tuple[str, bytes]]:
    """All valid programs of *source*."""
    found = []
    for sketch in source.every():
        table = sketch.space.rows(0, sketch.space.size)
        found += [(sketch.key, row.tobytes()) for row in table[sketch.valid(table)]]
    return found


def reached(source: SketchSource, rng: np.random.Generator) -> list[tuple[str, bytes]]:
    """All programs whose prefixes are reached from the first."""
    drawn = [prefix.sample(1, rng) for prefix in programs(begin(source))]
    return [(sketch.key, row.tobytes()) for sketch, table in drawn for row in table]


def walked(source: SketchSource, rng: np.random.Generator) -> list[Prefix]:
    """The prefixes of one random program."""
    path = [begin(source)]
    while path[-1].options:
        path.append(path[-1].options[int(rng.integers(len(path[-1].options)))])
    return path


@pytest.mark.parametrize("task", [scale(7), matmul(1, 1, 2)])
def test_every_program_is_reached_once(task: Task, rng: np.random.Generator) -> None:
    source = SketchSampler(task)
    assert sorted(reached(source, rng)) == sorted(keys(source))


def test_programs_of_a_recorded_grid_are_reached(rng: np.random.Generator) -> None:
    source = GridSource(grid_of(matmul(16, 24, 8)))
    assert sorted(reached(source, rng)) == sorted(keys(source))


def test_random_walks_end_in_valid_programs(rng: np.random.Generator) -> None:
    source = SketchSampler(dense_relu(64, 96, 48))
    seen = set()
    for _ in range(20):
        last = walked(source, rng)[-1]
        sketch, table = last.sample(6, rng)
        assert len(np.unique(table, axis=0)) == 1, "all is decided"
        assert sketch.space.contains(table[0])
        seen.add(last.decided)
    assert len(seen) > 15


def test_samples_begin_with_their_prefix(rng: np.random.Generator) -> None:
    source = SketchSampler(dense_relu(64, 96, 48))
    for prefix in walked(source, rng):
        sketch, table = prefix.sample(6, rng)
        assert len(table) and sketch.valid(table).all()
        columns = {n: sketch.columns.index(n) for n, _ in prefix.decided if n in sketch.columns}
        for name, value in prefix.decided:
            if name in columns:
                assert (table[:, columns[name]] == value).all()
            if name == "sketch":
                assert sketch.number == value


def test_prefixes_have_equal_decisions_only_if_they_are_equal(rng: np.random.Generator) -> None:
    source = SketchSampler(matmul(16, 24, 8))
    for prefix in walked(source, rng):
        decided = [option.decided for option in prefix.options]
        assert len(set(decided)) == len(decided)
        assert all(d[: len(prefix.decided)] == prefix.decided for d in decided)
