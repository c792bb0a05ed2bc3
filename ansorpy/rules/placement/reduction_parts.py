"""Draw the number of blocks that share a reduction (CUDA)."""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.rules.base import Subject
from ansorpy.rules.placement.rfactor_factors import FactorRule, before_rfactors
from ansorpy.rules.tiling.reduction_parts import ReductionParts
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["DrawReductionParts"]


@dataclass(frozen=True)
class DrawReductionParts(FactorRule):
    """Replace the number of parts of each reduction that blocks share by one that fills the grid.

    Args:
        parts: The numbers of parts, those of
            :class:`~ansorpy.rules.sketch.split_reduction.SplitReduction`.
    """

    parts: ReductionParts = ReductionParts()

    def options(self, state: State, subject: Subject, target: Target) -> list[int]:
        """The lengths of parts."""
        split, before = before_rfactors(state)[int(subject)]
        stage = before.stage(split.stage)
        extent = stage.iter(split.iter).extent or 1
        return [-(-extent // n) for n in self.parts.counts(before, stage, target)]
