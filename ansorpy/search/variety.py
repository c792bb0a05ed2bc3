"""Candidates that are good and unlike what was tried: a model may be wrong about all of a kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ansorpy.cost.view import Floats
from ansorpy.schedule.space import Table
from ansorpy.search.population import Candidate, Scored, top

__all__ = ["varied"]

Codes = npt.NDArray[np.int64]

_BASE = 1_000_003
"""Values of a decision are digits of one number."""

_REACH = 4.0
"""Decisions in which two programs differ whose errors correlate by 1/e."""

_SHORTLIST = 256
"""Candidates that are compared, at least; twice those wanted."""


def varied(
    groups: Sequence[Scored],
    n: int,
    tried: Sequence[Candidate],
    taken: set[tuple[str, bytes]],
    error: float,
) -> list[Candidate]:
    """The *n* candidates of *groups* to try next, first things first; none that is *taken*.

    One by one, the candidate with the highest upper bound: the logarithm of its score, and *error*
    times what is not known of the model's error there from what was *tried* or is to be tried
    before it.  Programs that differ in few decisions share their errors, so of many that are
    nearly the same a few are measured before something else has a turn.

    Paper: GP-BUCB (Desautels et al., JMLR 2014), batches by hallucinated observations.  Differs:
    the nearest observation alone counts, which needs no matrix.
    """
    offered = top(groups, max(_SHORTLIST, 2 * n), taken)
    if not offered:
        return []
    names = list(dict.fromkeys(name for c in offered for name in c.structure.space.slices))
    here, before = np.split(_codes([*offered, *tried], names), [len(offered)])
    apart = np.full(len(offered), len(names) + 1)
    for row in before:
        np.minimum(apart, _differing(here, row), out=apart)
    scores = np.array([c.score for c in offered])
    logarithm = np.log(np.maximum(scores, np.finfo(np.float64).tiny))
    left = np.ones(len(offered), dtype=np.bool_)
    chosen: list[Candidate] = []
    for _ in range(min(n, len(offered))):
        bound = logarithm + error * _unknown(apart)
        at = int(np.argmax(np.where(left, bound, -np.inf)))
        left[at] = False
        chosen.append(offered[at])
        np.minimum(apart, _differing(here, here[at]), out=apart)
    return chosen


def _unknown(apart: Codes) -> Floats:
    """The share of the error that a program so many decisions away says nothing about."""
    share: Floats = 1 - np.exp(-apart / _REACH)
    return share


def _differing(codes: Codes, row: Codes) -> Codes:
    """In how many columns each row of *codes* differs from *row*."""
    number: Codes = np.count_nonzero(codes != row, axis=1)
    return number


def _codes(candidates: Sequence[Candidate], names: Sequence[str]) -> Codes:
    """A row a candidate: its structure, and one number for each decision called so, -1 for none."""
    found = np.full((len(candidates), 1 + len(names)), -1, dtype=np.int64)
    rows: dict[str, list[int]] = {}
    for number, candidate in enumerate(candidates):
        rows.setdefault(candidate.structure.key, []).append(number)
    for structure, numbers in enumerate(rows.values()):
        space = candidates[numbers[0]].structure.space
        table = np.array([candidates[n].row for n in numbers])
        found[numbers, 0] = structure
        for column, name in enumerate(names, 1):
            if name in space.slices:
                found[numbers, column] = _number(table[:, space.slices[name]])
    return found


def _number(part: Table) -> Codes:
    """Each row as one number."""
    powers = np.array([pow(_BASE, k, 1 << 62) for k in range(part.shape[1])], dtype=np.int64)
    number: Codes = part @ powers
    return number
