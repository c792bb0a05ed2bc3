"""The ranking loss of the learned model: penalises pairs of programs ranked in the wrong order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansorpy.arrays import Floats
from ansorpy.cost.dataset import Training

__all__ = ["Pairs", "pack_ranking", "pairs_of"]

_MARGIN = 0.02
"""Programs whose relative throughput differs by less count as equally fast, as it may be noise."""

_PARTNERS = 128
"""Maximum number of programs that each is compared with; larger tasks are sampled."""

_Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pairs:
    """Pairs of a faster and a slower program of one task, and how much their order matters."""

    faster: _Indices
    slower: _Indices
    weight: Floats


def pairs_of(training: Training, seed: int) -> Pairs:
    """Pairs within each task of *training*, weighted by the difference of their throughputs.

    A task's total weight is its number of programs.
    """
    rng = np.random.default_rng(seed)
    found = []
    for first, end in zip(training.tasks, [*training.tasks[1:], len(training.label)], strict=True):
        label = training.label[first:end]
        a, b = _candidates(len(label), rng)
        ahead = label[a] > label[b] + _MARGIN
        a, b = a[ahead], b[ahead]
        apart = label[a] - label[b]
        found.append((first + a, first + b, apart * (len(label) / max(apart.sum(), 1e-9))))
    return Pairs(*(np.concatenate(columns) for columns in zip(*found, strict=True)))


def _candidates(n: int, rng: np.random.Generator) -> tuple[_Indices, _Indices]:
    """Ordered pairs out of *n* programs: all, or random ones beyond :data:`_PARTNERS`."""
    if n <= _PARTNERS:
        first, second = np.divmod(np.arange(n * n), n)
        return first, second
    one = np.repeat(np.arange(n), _PARTNERS)
    other = rng.integers(n, size=len(one))
    return np.concatenate([one, other]), np.concatenate([other, one])


def pack_ranking(
    training: Training, seed: int
) -> Callable[[Floats, object], tuple[Floats, Floats]]:
    """The objective for LightGBM: gradient and curvature of the loss for every statement's row.

    A program's score is the sum over its statements, so each of its rows has the same gradient.
    The loss is logistic in the difference of two scores (RankNet), without LambdaRank's weighting
    by change of position, because the weighting by throughput already expresses the cost of a
    mistake.
    """
    pairs = pairs_of(training, seed)
    programs = len(training.label)

    def objective(scores: Floats, _: object) -> tuple[Floats, Floats]:
        total = np.add.reduceat(scores, training.starts)
        apart = np.clip(total[pairs.faster] - total[pairs.slower], -50, 50)
        wrong = 1 / (1 + np.exp(apart))
        push = pairs.weight * wrong
        bend = push * (1 - wrong)
        gradient = _sum(pairs.slower, push, programs) - _sum(pairs.faster, push, programs)
        curvature = _sum(pairs.slower, bend, programs) + _sum(pairs.faster, bend, programs)
        return gradient[training.program], curvature[training.program] + 1e-3

    return objective


def _sum(where: _Indices, values: Floats, size: int) -> Floats:
    return np.bincount(where, values, size).astype(np.float64)
