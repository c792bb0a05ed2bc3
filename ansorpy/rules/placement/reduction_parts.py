"""Draw the number of blocks that share a reduction (CUDA)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from ansorpy.rules.base import PlacementRule
from ansorpy.rules.placement.rfactor_factors import before_rfactors, with_factors
from ansorpy.rules.tiling.reduction_parts import ReductionParts
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["DrawReductionParts"]


@dataclass(frozen=True)
class DrawReductionParts(PlacementRule):
    """Replace the number of parts of each reduction that blocks share by one that fills the grid.

    The shape of the partial sums depends on it, so it is fixed in a placed sketch, not a column.

    Args:
        parts: The numbers of parts, those of
            :class:`~ansorpy.rules.sketch.split_reduction.SplitReduction`.
    """

    parts: ReductionParts = ReductionParts()

    def draw(self, state: State, target: Target, rng: np.random.Generator) -> State:
        factors = self._factors(state, target)
        return with_factors(state, {at: int(rng.choice(of)) for at, of in factors.items()})

    def every(self, state: State, target: Target) -> Iterator[State]:
        factors = self._factors(state, target)
        for chosen in product(*factors.values()):
            yield with_factors(state, dict(zip(factors, chosen, strict=True)))

    def _factors(self, state: State, target: Target) -> dict[int, list[int]]:
        """The lengths of parts from which to draw, by the number of the split step."""
        found = {}
        for at, (split, before) in before_rfactors(state).items():
            stage = before.stage(split.stage)
            extent = stage.iter(split.iter).extent or 1
            found[at] = [-(-extent // n) for n in self.parts.counts(before, stage, target)]
        return found
