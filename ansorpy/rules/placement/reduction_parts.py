"""Draw the number of blocks that share a reduction (CUDA)."""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.rules.base import PlacementRule, Subject
from ansorpy.rules.placement.rfactor_factors import before_rfactors, with_factors
from ansorpy.rules.tiling.reduction_parts import ReductionParts
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["DrawReductionParts"]


@dataclass(frozen=True)
class DrawReductionParts(PlacementRule[int]):
    """Replace the number of parts of each reduction that blocks share by one that fills the grid.

    The shape of the partial sums depends on it, so it is fixed in a placed sketch, not a column.

    Args:
        parts: The numbers of parts, those of
            :class:`~ansorpy.rules.sketch.split_reduction.SplitReduction`.
    """

    parts: ReductionParts = ReductionParts()

    def subjects(self, state: State) -> list[Subject]:
        """The numbers of the split steps."""
        return list(before_rfactors(state))

    def options(self, state: State, subject: Subject, target: Target) -> list[int]:
        """The lengths of parts."""
        split, before = before_rfactors(state)[int(subject)]
        stage = before.stage(split.stage)
        extent = stage.iter(split.iter).extent or 1
        return [-(-extent // n) for n in self.parts.counts(before, stage, target)]

    def take(self, state: State, subject: Subject, option: int) -> State:
        return with_factors(state, {int(subject): option})
