"""A schedule written by hand with open numbers, as the only sketch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ansorpy.errors import UsageError
from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["Template"]


@dataclass(frozen=True)
class Template(SketchRule):
    """Applies *schedule* to the definition; the numbers that it leaves open are the space.

    Open numbers are ``None`` (factors of a split) and ``OneOf`` (a choice), AutoTVM's
    ``define_split`` and ``define_knob``.
    Paper: AutoTVM (Chen et al., NeurIPS 2018).
    """

    schedule: Callable[[State], State]

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        return Verdict.apply_and_skip_rest("a template schedules all stages")

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        scheduled = self.schedule(state)
        if not isinstance(scheduled, State):
            raise UsageError(
                f"the template returned {scheduled!r}, not a State",
                hint="end it with return state",
            )
        yield scheduled, -1
