"""Figures of a ranking, on rankings whose figures are known."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from ansorpy.cost.metrics import pairs, rank_correlation, ranking, reached, recall, rmse

SECONDS = np.array([4.0, 1.0, 3.0, 2.0, np.inf, 8.0])


def test_a_perfect_ranking_has_ones() -> None:
    found = ranking(1 / SECONDS, SECONDS, 2)
    assert found.correlation == pytest.approx(1)
    assert (found.recall, found.reached_first, found.reached, found.pairs) == (1, 1, 1, 1)
    assert found.rmse == pytest.approx(0, abs=1e-12)


def test_the_opposite_ranking() -> None:
    found = ranking(np.minimum(SECONDS, 100), SECONDS, 2)
    assert found.correlation == pytest.approx(-1)
    assert (found.recall, found.reached_first, found.reached) == (0, 0, 1 / 8)
    assert found.pairs == 0


def test_some_of_the_fastest_are_found() -> None:
    scores = np.array([5.0, 1.0, 4.0, 3.0, 0.0, 2.0])
    assert recall(scores, SECONDS, 3) == pytest.approx(2 / 3)
    assert reached(scores, SECONDS, 1) == 1 / 4 and reached(scores, SECONDS, 3) == 1 / 2
    assert reached(scores, SECONDS, 100) == 1 and recall(scores, SECONDS, 100) == 1


def test_pairs_and_errors_of_six_programs() -> None:
    scores = np.array([5.0, 1.0, 4.0, 3.0, 0.0, 2.0])
    # Of the 15 pairs these are right: 2 < 0 is not, but each before the failed one is, and so on.
    right = sum(
        scores[a] > scores[b] for a in range(6) for b in range(6) if SECONDS[a] < SECONDS[b]
    )
    assert pairs(scores, SECONDS) == pytest.approx(right / 15)
    assert pairs(np.zeros(6), SECONDS) == 0.5 and np.isnan(pairs(scores, np.ones(6)))
    assert rmse(np.zeros(6), SECONDS) == pytest.approx(np.std(1 / SECONDS))
    assert rmse(3 / SECONDS - 7, SECONDS) == pytest.approx(0, abs=1e-12)


def test_pairs_of_many_programs_need_little_memory(rng: np.random.Generator) -> None:
    seconds = rng.integers(1, 50, 2000).astype(float)
    scores = rng.integers(0, 5, 2000) / seconds
    tracemalloc.start()
    found = pairs(scores, seconds)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8e6
    faster, slower = np.nonzero(seconds[:, None] < seconds)
    apart = scores[faster] - scores[slower]
    assert found == pytest.approx(np.mean((1 + np.sign(apart)) / 2))


def test_equal_values_share_a_rank(rng: np.random.Generator) -> None:
    a, b = rng.integers(0, 4, 50).astype(float), rng.normal(size=50)
    order = rng.permutation(50)
    assert rank_correlation(a[order], b[order]) == pytest.approx(rank_correlation(a, b))
    assert rank_correlation(np.array([1.0, 1, 2, 2]), np.array([1.0, 2, 3, 4])) == pytest.approx(
        2 / np.sqrt(5)
    )


def test_nothing_to_rank() -> None:
    assert np.isnan(rank_correlation(np.ones(2), np.ones(2)))
    assert np.isnan(rank_correlation(np.ones(9), np.arange(9.0)))
    with pytest.raises(ValueError, match="no program ran"):
        reached(np.ones(2), np.full(2, np.inf), 1)
