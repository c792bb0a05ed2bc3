"""Choosing good candidates that differ from those tried, as models misjudge similar ones alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, log

import numpy as np
import numpy.typing as npt

from ansorpy.cost.nest_view import Floats
from ansorpy.measure.result import MeasureResult
from ansorpy.schedule.space import Table
from ansorpy.search.population import Candidate, Key, Scored, by_sketch, top

__all__ = ["Tried", "differing", "nearest", "spread", "varied"]

Codes = npt.NDArray[np.int64]

_BASE = 1_000_003
"""Base of the number that encodes a decision's values as digits."""

_REACH = 4.0
"""Number of differing decisions at which the errors of two programs correlate by 1/e."""

_NOISE = 0.1
"""What two measurements of a program's error differ by, as a share of the expected error."""

_REMEMBERED = 256
"""Number of tried programs, the fastest, whose errors count."""

_SHORTLIST = 256
"""Fewest candidates to choose from; otherwise twice the number wanted."""

_AT_ONCE = 1024
"""Number of tried programs compared with all candidates at once; these fit in the caches."""


@dataclass(frozen=True)
class Tried:
    """A measured candidate; *seconds* is None if it failed."""

    candidate: Candidate
    seconds: float | None = None

    @staticmethod
    def of(found: Iterable[tuple[Candidate, MeasureResult]]) -> list[Tried]:
        """What was *found*."""
        return [Tried(c, result.median_s if result.ok else None) for c, result in found]

    @property
    def error(self) -> float | None:
        """The logarithm of its speed relative to the score it was picked with; None if unknown."""
        if self.seconds is None or self.candidate.score <= 0:
            return None
        return -log(self.seconds * self.candidate.score)


def varied(
    groups: Sequence[Scored],
    n: int,
    tried: Sequence[Tried],
    taken: set[Key],
    error: float,
) -> list[Candidate]:
    """The *n* candidates of *groups* to try next, most important first; none that is *taken*.

    Without an *error*, these are the best.
    """
    if not error:
        return top(groups, n, taken)
    return spread(top(groups, max(_SHORTLIST, 2 * n), taken), n, error, tried)


def spread(
    offered: Sequence[Candidate], n: int, error: float, tried: Sequence[Tried] = ()
) -> list[Candidate]:
    """The *n* of the candidates *offered* to try next, most important first.

    Repeatedly takes the candidate with the highest upper bound: the logarithm of its score, plus
    the error that the programs *tried* let expect, plus *error* times the share of the error that
    remains unknown, given these and those chosen before it.  Programs that differ in few decisions
    share their errors, so only a few of many similar ones are measured before others.

    Paper: GP-BUCB (Desautels et al., JMLR 2014), batches by hallucinated observations.  Differs:
    of what is unknown, only the nearest observation counts.
    """
    if not offered:
        return []
    names = list(dict.fromkeys(name for c in offered for name in c.sketch.space.slices))
    codes = _codes([*offered, *(t.candidate for t in tried)], names)
    here, before = np.split(codes, [len(offered)])
    here = np.asfortranarray(here)  # as it is compared by columns
    apart = nearest(here, before)
    scores = np.array([c.score for c in offered])
    logarithm = np.log(np.maximum(scores, np.finfo(np.float64).tiny))
    logarithm += _expected_error(here, before, tried)
    left = np.ones(len(offered), dtype=np.bool_)
    chosen: list[Candidate] = []
    for _ in range(min(n, len(offered))):
        bound = logarithm + error * _unknown(apart)
        at = int(np.argmax(np.where(left, bound, -np.inf)))
        left[at] = False
        chosen.append(offered[at])
        np.minimum(apart, differing(here, here[at]), out=apart)
    return chosen


def _expected_error(here: Codes, before: Codes, tried: Sequence[Tried]) -> Floats:
    """The model's error at each row of *here*, by kriging from the programs *tried*.

    Only differences between their errors count, as the model's level does not matter.
    """
    known = [(t.seconds or inf, n, t.error) for n, t in enumerate(tried) if t.error is not None]
    known = sorted(known)[:_REMEMBERED]
    if not known:
        return np.zeros(len(here))
    errors = np.array([error for _, _, error in known])
    rows = before[[n for _, n, _ in known]]
    shared = _alike(rows, rows) + _NOISE**2 * np.eye(len(rows))
    level = errors.mean()
    found: Floats = level + _alike(here, rows) @ np.linalg.solve(shared, errors - level)
    return found


def _alike(codes: Codes, others: Codes) -> Floats:
    """The correlation of the errors of each row of *codes* with those of each of *others*."""
    apart = np.zeros((len(codes), len(others)))
    for column, other in zip(codes.T, others.T, strict=True):
        apart += column[:, None] != other
    found: Floats = np.exp(-apart / _REACH)
    return found


def _unknown(apart: Codes) -> Floats:
    """The share of the error left unknown by a program that differs in *apart* decisions."""
    share: Floats = 1 - np.exp(-apart / _REACH)
    return share


def nearest(codes: Codes, others: Codes) -> Codes:
    """Number of columns in which each row of *codes* differs from the nearest row of *others*.

    If there are no others, this is the number of all columns.
    """
    nearest = np.full(len(codes), codes.shape[1])
    for first in range(0, len(others), _AT_ONCE):
        part = others[first : first + _AT_ONCE]
        apart = np.zeros((len(codes), len(part)), dtype=np.int16)
        for column, other in zip(codes.T, part.T, strict=True):
            apart += column[:, None] != other
        np.minimum(nearest, apart.min(axis=1), out=nearest)
    return nearest


def differing(codes: Codes, row: Codes) -> npt.NDArray[np.int16]:
    """Number of columns in which each row of *codes* differs from *row*."""
    number: npt.NDArray[np.int16] = (row[:, None] != codes.T).sum(axis=0, dtype=np.int16)
    return number


def _codes(candidates: Sequence[Candidate], names: Sequence[str]) -> Codes:
    """One row per candidate: its sketch, then a number for each named decision, -1 for none."""
    found = np.full((len(candidates), 1 + len(names)), -1, dtype=np.int64)
    for number, (sketch, table, members) in enumerate(by_sketch(candidates)):
        found[members, 0] = number
        for column, name in enumerate(names, 1):
            if name in sketch.space.slices:
                found[members, column] = _number(table[:, sketch.space.slices[name]])
    return found


def _number(part: Table) -> Codes:
    """Encode each row as one number."""
    powers = np.array([pow(_BASE, k, 1 << 62) for k in range(part.shape[1])], dtype=np.int64)
    number: Codes = part @ powers
    return number
