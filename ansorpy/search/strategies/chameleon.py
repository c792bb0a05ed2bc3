"""A walk on all decisions at once by a policy that seeks high scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.arrays import Floats, Masks
from ansorpy.schedule.space import Space, Table
from ansorpy.search.population import sample_valid
from ansorpy.search.strategy import Context
from ansorpy.search.walks.actions import Actions, per_knob
from ansorpy.search.walks.walk import PolicyWalk, Walk

__all__ = ["Chameleon"]

_EQUAL = 1e-9
"""Deviation of scores, as a share of their mean, up to which they are equal but for rounding."""


@dataclass
class Chameleon(PolicyWalk):
    """Walks with a step of every decision at once; its policy (PPO) seeks high scores.

    In each step, every decision goes to the previous or next row of its domain, or stays.  The
    reward is the model's score of the place reached.  In the next round, some chains go on where
    they stood, and the others start at random.

    Paper: Chameleon, ICLR 2020, arXiv 2001.08743 §3.1.  Source: its public code (hyper-parameters
    of the policy; 128 chains of up to 500 steps; an episode ends when 75 % of the knobs stay).
    Differs: rewards are in standard deviations of the scores at the start, so that they do not
    depend on the model's unit, or in units of their mean if all are equal; a place that breaks a
    constraint is worth as much as their mean.  Gradient steps use 256 rows instead of 32, as many
    more rows are visited at once.  Which of the best places are measured is left to the selector,
    as Chameleon's adaptive sampling is one.

    Args:
        kept: Share of the chains that go on; the paper keeps all or draws all again.
    """

    settled: float | None = 0.75
    kept: float = 0.5

    def actions(self, space: Space) -> Actions:
        return per_knob(space)

    def rewards(self, walk: Walk, after: Floats, valid: Masks) -> Floats:
        first = walk.starts.scores
        mean, unit = float(first.mean()), float(first.std())
        if unit <= _EQUAL * mean:
            unit = mean
        return np.where(valid, (after - mean) / unit, 0.0)

    def _starts(self, walk: Walk, n: int, context: Context) -> Table:
        kept = walk.sketch.space.decode(walk.numbers)[: int(self.kept * n)]
        return np.concatenate([kept, sample_valid(walk.sketch, n - len(kept), context.rng)])
