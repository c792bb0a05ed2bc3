"""Metrics of how well scores rank measured programs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.arrays import Floats

__all__ = ["Ranking", "pairs", "rank_correlation", "ranking", "reached", "recall", "rmse"]


_ROWS = 256
"""Programs whose pairs with all others are compared together."""


@dataclass(frozen=True)
class Ranking:
    """Metrics of one ranking, where 1 is the best value of each but ``rmse``, whose is 0.

    See the functions of the same names.

    ``correlation`` is NaN if fewer than three programs ran or all scores are equal.
    """

    correlation: float
    recall: float
    reached_first: float
    reached: float
    pairs: float
    rmse: float


def ranking(scores: Floats, seconds: Floats, k: int = 5) -> Ranking:
    """All metrics of *scores* (higher is faster) against *seconds* (infinite: failed).

    Raises:
        ValueError: Every program failed.
    """
    timed = np.isfinite(seconds)
    return Ranking(
        rank_correlation(scores[timed], -seconds[timed]),
        recall(scores, seconds, k),
        reached(scores, seconds, 1),
        reached(scores, seconds, k),
        pairs(scores, seconds),
        rmse(scores, seconds),
    )


def rank_correlation(a: Floats, b: Floats) -> float:
    """Spearman's rank correlation, with equal values sharing a rank; NaN for fewer than three."""
    if len(a) < 3:
        return float("nan")
    first, second = _ranks(a), _ranks(b)
    if first.std() == 0 or second.std() == 0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def pairs(scores: Floats, seconds: Floats) -> float:
    """The share of pairs of programs with different times whose faster one has the higher score.

    Equal scores count half; NaN without such a pair.
    """
    pairs_found = right = equal = 0
    for first in range(0, len(seconds), _ROWS):
        rows = slice(first, first + _ROWS)
        faster = seconds[rows, None] < seconds
        pairs_found += int(np.count_nonzero(faster))
        right += int(np.count_nonzero(faster & (scores[rows, None] > scores)))
        equal += int(np.count_nonzero(faster & (scores[rows, None] == scores)))
    return (right + equal / 2) / pairs_found if pairs_found else float("nan")


def rmse(scores: Floats, seconds: Floats) -> float:
    """Root mean squared error of the throughput relative to the fastest program's.

    The scale of scores is a model's own: they are mapped to throughputs by the line that fits best.
    """
    throughput = seconds.min() / seconds
    line = np.stack([scores, np.ones(len(scores))], axis=1)
    fitted = line @ np.linalg.lstsq(line, throughput)[0]
    return float(np.sqrt(np.mean((fitted - throughput) ** 2)))


def recall(scores: Floats, seconds: Floats, k: int) -> float:
    """The share of the *k* fastest programs that are among the *k* with the highest scores."""
    k = min(k, len(scores))
    fastest = np.argsort(seconds, kind="stable")[:k]
    return len(set(fastest.tolist()) & set(_first(scores, k).tolist())) / k


def reached(scores: Floats, seconds: Floats, k: int) -> float:
    """The fastest program's time divided by that of the fastest among the *k* highest scores.

    This is the share of the best speed that measuring only these *k* would reach.  Source: TenSet's
    "top-k".

    Raises:
        ValueError: Every program failed.
    """
    if not np.isfinite(seconds).any():
        raise ValueError("no program ran")
    return float(seconds.min() / seconds[_first(scores, k)].min())


def _first(scores: Floats, k: int) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    return np.argsort(-scores, kind="stable")[:k]


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2
    ranks: Floats = middle[inverse]
    return ranks
