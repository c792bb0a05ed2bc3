"""The rule that leaves a stage as it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["SkipStage"]


@dataclass(frozen=True)
class SkipStage(SketchRule):
    """Continue with the next stage.

    This rule is last in every preset, and tried unless a rule skipped the rest.

    Paper: OSDI'20 §4.1, Table 1 rule 1.
    """

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        return Verdict.apply("no earlier rule claimed the stage for itself")

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        yield state, stage_id - 1
