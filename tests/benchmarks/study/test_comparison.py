"""Comparisons: means, intervals, ranks, and tests that find what is there and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.study.comparison import compared, holm


def scores(
    factors: dict[str, float], seed: int, seeds: int = 20
) -> dict[str, dict[str, list[float]]]:
    rng = np.random.default_rng(seed)
    return {
        name: {
            f"s{n}": list(factor * 10 * (n + 1) * rng.lognormal(sigma=0.2, size=seeds))
            for n in range(8)
        }
        for name, factor in factors.items()
    }


def test_what_is_better_is_found() -> None:
    found = compared(scores({"usual": 1.0, "half": 0.5, "twice": 2.0, "same": 1.0}, 0), "usual")
    by_name = {s.name: s for s in found.standings}
    assert [s.name for s in found.standings][0] == "half" and found.subjects == 8
    assert (by_name["half"].better, by_name["half"].worse, by_name["half"].rank) == (8, 0, 1.0)
    assert (by_name["twice"].better, by_name["twice"].worse, by_name["twice"].rank) == (0, 8, 4.0)
    assert by_name["same"].better + by_name["same"].worse <= 1
    assert found.p < 0.001 and 1.0 < found.critical_distance < 2.0
    for s in found.standings:
        assert s.low <= s.mean <= s.high < 1.2 * s.low


def test_equals_are_not_told_apart() -> None:
    p = [compared(scores(dict.fromkeys("abcd", 1.0), seed, 5), "a").p for seed in range(20)]
    assert np.mean(np.array(p) < 0.05) <= 0.2


def test_nemenyi_distances_are_those_of_the_literature() -> None:
    """Demsar's example: four classifiers on 14 data sets, 1.25."""
    rng = np.random.default_rng(0)
    found = {n: {str(s): [rng.random()] for s in range(14)} for n in "abcd"}
    assert compared(found, "a").critical_distance == pytest.approx(1.25, abs=0.005)


def test_who_lacks_a_subject_does_not_stand() -> None:
    found = scores({"a": 1.0, "b": 2.0, "c": 3.0}, 3)
    del found["b"]["s0"]
    found["c"]["more"] = [1.0]
    result = compared(found, "a")
    assert [s.name for s in result.standings] == ["a", "c"] and result.incomplete == ("b",)
    assert result.subjects == 8 and np.isnan(result.p)


def test_holm_steps_down() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == [True, False, False, True]
    assert holm([0.02, 0.02, 0.02]) == [False, False, False]
    assert holm([0.04, float("nan")]) == [False, False] and holm([]) == []


def test_the_reference_leads_its_equals() -> None:
    found = compared({name: {"s": [2.0, 2.0]} for name in "abc"}, "b")
    assert [s.name for s in found.standings] == ["b", "a", "c"]
