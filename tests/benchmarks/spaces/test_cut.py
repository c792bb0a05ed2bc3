"""Cutting a space down: by rule, to about as many points as were asked for."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from benchmarks.spaces.cut import cut_down
from tests.search.tasks import dense_relu, matmul


def sketch(task: Task) -> PlacedSketch:
    return SketchSampler(task).place(0, np.random.default_rng(0))


@pytest.mark.parametrize("points", [30, 300])
@pytest.mark.parametrize(
    "task", [matmul(64, 96, 48), dense_relu(37, 60, 128)], ids=lambda task: task.name
)
def test_the_cut_is_the_valid_part_of_its_product(task: Task, points: int) -> None:
    whole = sketch(task)
    found = cut_down(whole, points)
    assert 0.5 * points < len(found.rows) <= points
    assert whole.valid(found.rows).all()
    assert all(whole.space.contains(row) for row in found.rows[:20])
    assert len(np.unique(found.rows, axis=0)) == len(found.rows)
    product = np.prod([len(kept) for kept in found.kept.values()])
    assert len(found.rows) + found.refused == product


def test_every_domain_keeps_rows_from_its_first_to_its_last() -> None:
    whole = sketch(matmul(64, 96, 48))
    found = cut_down(whole, 300)
    for decision in whole.space.decisions:
        rows = sorted(map(tuple, decision.domain.rows.tolist()), key=lambda row: row[::-1])
        kept = found.kept[decision.name]
        assert set(kept) <= set(rows)
        if len(kept) > 1:
            assert (kept[0], kept[-1]) == (rows[0], rows[-1])


def test_a_small_space_is_not_cut() -> None:
    whole = sketch(matmul(4, 3, 2))
    found = cut_down(whole, 10_000)
    assert len(found.rows) + found.refused == whole.space.size


def test_the_same_cut_each_time() -> None:
    one, two = (cut_down(sketch(matmul(36, 48, 20)), 100) for _ in range(2))
    assert one.kept == two.kept and (one.rows == two.rows).all()
