"""What to measure next: good, new, and not the same thing again and again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.search import variety
from ansorpy.search.population import Candidate, Scored, sample_valid, score_all, top
from ansorpy.search.variety import Codes, Tried, spread, varied
from tests.search.tasks import dense_relu, sampler


def groups(seed: int, sketches: int = 3, rows: int = 60) -> list[Scored]:
    task, rng = dense_relu(48, 36, 60), np.random.default_rng(seed)
    drawn = sampler(task).draw(sketches, rng)
    tables = [(s, sample_valid(s, rows, rng)) for s in drawn]
    return score_all(task, AnalyticModel(), tables)


def differing(one: Candidate, other: Candidate) -> int:
    """In how many decisions two programs differ."""
    if one.sketch.key != other.sketch.key:
        return 100
    pairs = zip(one.sketch.space.tokens(one.row), other.sketch.space.tokens(other.row), strict=True)
    return sum(a != b for a, b in pairs)


def ran(candidate: Candidate, seconds: float) -> tuple[Candidate, MeasureResult]:
    return candidate, MeasureResult(TrialKind.OK, (seconds,))


def failed(candidate: Candidate) -> tuple[Candidate, MeasureResult]:
    return candidate, MeasureResult(TrialKind.RUN_ERROR, reason="no")


def test_a_model_that_is_never_wrong_is_followed() -> None:
    found = groups(0)
    assert [c.key for c in varied(found, 12, (), set(), 0.0)] == [c.key for c in top(found, 12)]


@pytest.mark.parametrize("error", [0.0, 0.5, 10.0])
def test_nothing_twice_and_nothing_that_is_taken(error: float) -> None:
    found = groups(1)
    first = varied(found, 20, (), set(), error)
    taken = {c.key for c in first}
    second = varied(found, 400, [Tried(c) for c in first], taken, error)
    keys = [c.key for c in (*first, *second)]
    assert len(first) == 20 and len(set(keys)) == len(keys)
    assert len(keys) == len({c.key for g in found for c in g.candidates()})
    assert varied([], 4, [Tried(c) for c in first], taken, error) == []


def test_of_programs_nearly_the_same_a_few_are_tried_first() -> None:
    [group] = groups(2, sketches=1, rows=200)
    best = group.rows(np.argsort(-group.scores)[:100])
    alike = [differing(best.candidates()[0], c) for c in best.candidates()]
    near = np.argsort(alike, kind="stable")[:30]
    # The thirty nearest to one program are a little better than all others.
    scores = np.full(len(best), 1.0)
    scores[near] = 1.05
    plateau = Scored(best.sketch, best.table, scores)
    trusting, doubting = (varied([plateau], 10, (), set(), error) for error in (0.0, 0.5))
    assert all(c.score == 1.05 for c in trusting)
    assert doubting[0].score == 1.05 and any(c.score == 1.0 for c in doubting[:4])
    apart = [
        np.mean([min(differing(c, d) for d in chosen if d is not c) for c in chosen])
        for chosen in (trusting, doubting)
    ]
    assert apart[1] > apart[0]


def test_what_the_model_got_wrong_counts_for_programs_alike() -> None:
    """Of equally good programs, those near one that was slower than its score come last."""
    [group] = groups(3, sketches=1, rows=120)
    equal = Scored(group.sketch, group.table, np.ones(len(group)))
    slow, *others = equal.candidates()
    fast = max(others, key=lambda c: differing(slow, c))
    offered = [c for c in others if c is not fast]
    chosen = spread(offered, 30, 0.0, Tried.of([ran(slow, 2.0), ran(fast, 0.5)]))
    nearer = [differing(fast, c) < differing(slow, c) for c in chosen]
    assert np.mean(nearer[:10]) > np.mean(nearer[20:])
    # A failure says nothing about speed, and errors that all agree do not change the order.
    for found in ([failed(slow), failed(fast)], [ran(slow, 2.0), ran(fast, 2.0)]):
        assert spread(offered, 30, 0.0, Tried.of(found)) == spread(offered, 30, 0.0)


def test_the_level_of_a_model_is_no_error() -> None:
    """Scores of one round may be a hundred times those of another: each was given by its model."""
    [group] = groups(3, sketches=1, rows=120)
    equal = Scored(group.sketch, group.table, np.ones(len(group)))
    tried, offered = equal.candidates()[:8], equal.candidates()[8:]
    rounds = [
        [
            ran(replace(c, score=level), 1.0 / speed)
            for c, speed in zip(part, (1, 2, 1, 4), strict=True)
        ]
        for part, level in ((tried[:4], 1.0), (tried[4:], 100.0))
    ]
    same = [[(replace(c, score=1.0), result) for c, result in found] for found in rounds]
    chosen, wanted = (
        spread(offered, 20, 0.3, [t for found in each for t in Tried.of(found)])
        for each in (rounds, same)
    )
    assert [c.key for c in chosen] == [c.key for c in wanted]
    assert [c.key for c in chosen] != [c.key for c in spread(offered, 20, 0.3)]


def test_many_tried_programs_are_compared_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    def differing_rows(codes: Codes, row: Codes) -> Codes:
        compared.append(len(codes))
        found: Codes = np.count_nonzero(codes != row, axis=1)
        return found

    monkeypatch.setattr(variety, "differing", differing_rows)
    tried = [Tried(c) for g in groups(6, rows=500) for c in g.candidates()]
    assert len(varied(groups(5), 12, tried, set(), 0.5)) == len(compared) == 12 < len(tried)


@pytest.mark.parametrize("others", [0, 1, 1024, 2311])
def test_the_nearest_of_many(others: int, rng: np.random.Generator) -> None:
    codes, tried = rng.integers(0, 9, (37, 11)), rng.integers(0, 9, (others, 11))
    want = [
        min((sum(a != b for a, b in zip(code, row, strict=True)) for row in tried), default=11)
        for code in codes
    ]
    assert variety.nearest(codes, tried).tolist() == want


def test_what_was_tried_makes_its_neighbours_wait() -> None:
    [group] = groups(3, sketches=1, rows=200)
    even = Scored(group.sketch, group.table, np.ones(len(group)))
    [tried, *_] = even.candidates()
    chosen = varied([even], 5, [Tried(tried)], {tried.key}, 0.5)
    others = [c for c in even.candidates() if c.key != tried.key]
    farthest = max(differing(tried, c) for c in others)
    assert differing(tried, chosen[0]) == farthest
