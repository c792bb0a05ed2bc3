"""Episodes of single changes by a policy that seeks improvements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.arrays import Floats, Masks
from ansorpy.schedule.space import Space
from ansorpy.search.walks.actions import Actions, one_knob
from ansorpy.search.walks.walk import PolicyWalk, Walk

__all__ = ["ReinforcedSearch"]

_LEAST = np.finfo(np.float64).tiny


@dataclass
class ReinforcedSearch(PolicyWalk):
    """Changes one decision at a time; its policy (PPO) seeks improvements.

    An episode starts from random programs.  In each step, one decision goes to the previous or
    next row of its domain, or none does.  The reward is the logarithm of the ratio of the scores
    after and before the step, and -1 where it would break a constraint.

    Paper: Woodpecker-DL, arXiv 2008.04567, which searches by reinforcement learning or by a genetic
    algorithm (``ga``).  Differs: neither its code nor these details are public, so all of them are
    ours.  Rewards come from the model instead of from measurements, of which there would be too
    few to learn from.
    """

    def actions(self, space: Space) -> Actions:
        return one_knob(space)

    def rewards(self, walk: Walk, after: Floats, valid: Masks) -> Floats:
        ratio = np.log(np.maximum(after, _LEAST)) - np.log(np.maximum(walk.scores, _LEAST))
        return np.where(valid, ratio, -1.0)
