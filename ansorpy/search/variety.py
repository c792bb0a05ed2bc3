"""Choosing good candidates that differ from those tried, as models misjudge similar ones alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ansorpy.cost.nest_view import Floats
from ansorpy.schedule.space import Table
from ansorpy.search.population import Candidate, Scored, top

__all__ = ["differing", "nearest", "spread", "varied"]

Codes = npt.NDArray[np.int64]

_BASE = 1_000_003
"""Base of the number that encodes a decision's values as digits."""

_REACH = 4.0
"""Number of differing decisions at which the errors of two programs correlate by 1/e."""

_SHORTLIST = 256
"""Fewest candidates to choose from; otherwise twice the number wanted."""

_AT_ONCE = 1024
"""Number of tried programs compared with all candidates at once; these fit in the caches."""


def varied(
    groups: Sequence[Scored],
    n: int,
    tried: Sequence[Candidate],
    taken: set[tuple[str, bytes]],
    error: float,
) -> list[Candidate]:
    """The *n* candidates of *groups* to try next, most important first; none that is *taken*.

    Without an *error*, these are the best.
    """
    if not error:
        return top(groups, n, taken)
    return spread(top(groups, max(_SHORTLIST, 2 * n), taken), n, error, tried)


def spread(
    offered: Sequence[Candidate], n: int, error: float, tried: Sequence[Candidate] = ()
) -> list[Candidate]:
    """The *n* of the candidates *offered* to try next, most important first.

    Repeatedly takes the candidate with the highest upper bound: the logarithm of its score plus
    *error* times the share of the model's error that remains unknown, given the programs *tried* or
    chosen before it.  Programs that differ in few decisions share their errors, so only a few of
    many similar ones are measured before others.

    Paper: GP-BUCB (Desautels et al., JMLR 2014), batches by hallucinated observations.  Differs:
    only the nearest observation counts, which needs no matrix.
    """
    if not offered:
        return []
    names = list(dict.fromkeys(name for c in offered for name in c.sketch.space.slices))
    here, before = np.split(_codes([*offered, *tried], names), [len(offered)])
    apart = nearest(here, before)
    scores = np.array([c.score for c in offered])
    logarithm = np.log(np.maximum(scores, np.finfo(np.float64).tiny))
    left = np.ones(len(offered), dtype=np.bool_)
    chosen: list[Candidate] = []
    for _ in range(min(n, len(offered))):
        bound = logarithm + error * _unknown(apart)
        at = int(np.argmax(np.where(left, bound, -np.inf)))
        left[at] = False
        chosen.append(offered[at])
        np.minimum(apart, differing(here, here[at]), out=apart)
    return chosen


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


def differing(codes: Codes, row: Codes) -> Codes:
    """Number of columns in which each row of *codes* differs from *row*."""
    number: Codes = np.count_nonzero(codes != row, axis=1)
    return number


def _codes(candidates: Sequence[Candidate], names: Sequence[str]) -> Codes:
    """One row per candidate: its sketch, then a number for each named decision, -1 for none."""
    found = np.full((len(candidates), 1 + len(names)), -1, dtype=np.int64)
    rows: dict[str, list[int]] = {}
    for number, candidate in enumerate(candidates):
        rows.setdefault(candidate.sketch.key, []).append(number)
    for sketch, numbers in enumerate(rows.values()):
        space = candidates[numbers[0]].sketch.space
        table = np.array([candidates[n].row for n in numbers])
        found[numbers, 0] = sketch
        for column, name in enumerate(names, 1):
            if name in space.slices:
                found[numbers, column] = _number(table[:, space.slices[name]])
    return found


def _number(part: Table) -> Codes:
    """Encode each row as one number."""
    powers = np.array([pow(_BASE, k, 1 << 62) for k in range(part.shape[1])], dtype=np.int64)
    number: Codes = part @ powers
    return number
