"""Compare contestants on several subjects with several seeds: means, intervals and rank tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from ansorpy.arrays import Floats

__all__ = ["Comparison", "Scores", "Standing", "compared", "holm"]

Scores = Mapping[str, Mapping[str, Sequence[float]]]
"""By contestant and subject, the scores of the seeds: positive, the lower the better."""

LEVEL = 0.05
_RESAMPLES = 2000


@dataclass(frozen=True)
class Standing:
    """How one contestant stands.

    Args:
        mean: Geometric mean over the subjects of the medians over the seeds; ``low`` and ``high``
            contain it with a confidence of 95 %, by resampling the seeds of each subject.
        rank: Mean over the subjects of its place, 1 for the lowest median.
        better: Subjects on which it is significantly better than the reference, by the rank test
            of Mann and Whitney on the seeds, after Holm's correction for all tests made; ``worse``
            likewise.
    """

    name: str
    mean: float
    low: float
    high: float
    rank: float
    better: int
    worse: int


@dataclass(frozen=True)
class Comparison:
    """The standings, the best mean first.

    Args:
        subjects: How many subjects the reference has scores on.
        p: Friedman's test: how probable such different ranks were among equals; nan for fewer than
            three contestants or two subjects.
        critical_distance: Nemenyi's: mean ranks that differ by less do not differ significantly.
    """

    standings: tuple[Standing, ...]
    subjects: int
    p: float
    critical_distance: float
    incomplete: tuple[str, ...]
    """Contestants that lack one of these subjects, and so do not stand."""


def compared(scores: Scores, reference: str) -> Comparison:
    """Compare contestants on the subjects that *reference* has scores on.

    Paper: Demsar, "Statistical comparisons of classifiers over multiple data sets" (JMLR 2006):
    Friedman's test over subjects, Nemenyi's distance.
    """
    subjects = sorted(scores[reference])
    names = sorted(name for name in scores if set(subjects) <= set(scores[name]))
    medians = np.array([[np.median(scores[n][s]) for s in subjects] for n in names])
    ranks = _ranks(medians)
    tests = _against(scores, names, subjects, reference)
    rng = np.random.default_rng(0)
    standings = []
    for row, name in enumerate(names):
        low, high = _interval([np.asarray(scores[name][s], float) for s in subjects], rng)
        signs = [sign for (n, _), sign in tests.items() if n == name]
        standings.append(
            Standing(
                name, _mean(medians[row]), low, high, float(ranks[row].mean()),
                better=signs.count(-1), worse=signs.count(1),
            )
        )  # fmt: skip
    standings.sort(key=lambda standing: (standing.mean, standing.name != reference))
    p, distance = _friedman(medians)
    left_out = tuple(sorted(set(scores) - set(names)))
    return Comparison(tuple(standings), len(subjects), p, distance, left_out)


def holm(p: Sequence[float]) -> list[bool]:
    """Which of several tests are significant together, by Holm's step-down correction."""
    found = [False] * len(p)
    for place, number in enumerate(np.argsort(p, kind="stable")):
        if not p[number] <= LEVEL / (len(p) - place):
            break
        found[number] = True
    return found


def _mean(values: Floats) -> float:
    """The geometric mean."""
    return float(np.exp(np.log(values).mean()))


def _interval(samples: Sequence[Floats], rng: np.random.Generator) -> tuple[float, float]:
    """Percentiles of the geometric mean of medians when the seeds are drawn again."""
    drawn = [np.median(rng.choice(sample, (_RESAMPLES, len(sample))), axis=1) for sample in samples]
    means = np.exp(np.log(np.array(drawn)).mean(axis=0))
    low, high = np.percentile(means, (100 * LEVEL / 2, 100 * (1 - LEVEL / 2)))
    return float(low), float(high)


def _ranks(medians: Floats) -> Floats:
    from scipy.stats import rankdata

    return np.asarray(rankdata(medians, axis=0), dtype=np.float64)


def _friedman(medians: Floats) -> tuple[float, float]:
    """The p value of Friedman's test, and Nemenyi's critical distance of mean ranks."""
    from scipy.stats import friedmanchisquare, studentized_range

    k, n = medians.shape
    if k < 3 or n < 2:
        return float("nan"), float("nan")
    p = float(friedmanchisquare(*medians).pvalue)
    q = float(studentized_range.ppf(1 - LEVEL, k, np.inf)) / sqrt(2)
    return p, q * sqrt(k * (k + 1) / (6 * n))


def _against(
    scores: Scores, names: Sequence[str], subjects: Sequence[str], reference: str
) -> dict[tuple[str, str], int]:
    """-1 where a contestant is significantly better than *reference* on a subject, 1 for worse."""
    from scipy.stats import mannwhitneyu

    pairs = [(name, subject) for name in names for subject in subjects if name != reference]
    found = []
    for name, subject in pairs:
        one, other = scores[name][subject], scores[reference][subject]
        found.append(float(mannwhitneyu(one, other).pvalue))
    signs = {}
    for (name, subject), is_significant in zip(pairs, holm(found), strict=True):
        middle = np.median(scores[name][subject]) - np.median(scores[reference][subject])
        signs[name, subject] = int(np.sign(middle)) if is_significant else 0
    return signs
