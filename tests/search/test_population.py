"""Scores of several tables at once, and offers that take turns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ansorpy.search.population import in_turns, sample_valid, scored_again, scored_together
from tests.search.asking import BowlModel
from tests.search.tasks import dense_relu, sampler


def test_tables_of_a_sketch_are_scored_as_one_and_keep_their_scores(
    rng: np.random.Generator,
) -> None:
    task, model = dense_relu(24, 36, 20), BowlModel(calls=[])
    one, other = sampler(task).draw(2, rng)
    tables = [(s, sample_valid(s, n, rng)) for s, n in ((one, 7), (other, 5), (one, 1))]
    tables.append((other, tables[1][1][:0]))
    found = scored_together(task, model, tables)
    assert model.calls == [len(tables[0][1]) + len(tables[2][1]), len(tables[1][1])]
    for (sketch, table), group in zip(tables, found, strict=True):
        assert group.sketch is sketch and group.table is table
        [alone] = scored_together(task, model, [(sketch, table)])
        np.testing.assert_array_equal(group.scores, alone.scores)
    candidates = [c for group in found for c in group.candidates()]
    assert [c.key for c in scored_again(candidates, task, model)] == [c.key for c in candidates]
    assert scored_together(task, model, []) == []


def test_sources_take_turns_lazily() -> None:
    assert "".join(in_turns("abc", "", "xy")) == "axbyc"
    made: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(3):
            made.append(number)
            yield number

    turns = in_turns(numbers(), iter([7]))
    assert [next(turns), next(turns)] == [0, 7] and made == [0]
