"""The step that gives each lane of a vector a partial sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from ansorpy.errors import ScheduleError
from ansorpy.ir.expr import AxisKind
from ansorpy.schedule.steps.base import (
    Count,
    Step,
    at_least,
    chosen,
    compute_stage,
    numbered,
    opened,
    printed,
)
from ansorpy.schedule.steps.loops import split_into

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["SplitLanesStep"]


@dataclass(frozen=True)
class SplitLanesStep(Step):
    """Split reduce loop *iter* by *lanes*; the inner part is a vector with a sum per lane.

        for k: C += f(k)   -->   for k.0: for k.1 in lanes: part[k.1] += f(k.0 * lanes + k.1)
                                 C = a tree over part

    Each lane starts from the reduction's identity; a partial last part leaves the other lanes
    unchanged.  With this step a schedule allows additions to be reordered.
    """

    iter: str
    lanes: Count
    kind: Literal["split_lanes"] = field(default="split_lanes")

    @property
    def _column(self) -> str:
        return f"{self.stage}.lanes"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        it = stage.iter(self.iter)
        if it.kind is not AxisKind.REDUCE or stage.lanes is not None:
            reason = (
                "only a reduce loop has lanes that sum apart" if stage.lanes is None
                else f'the lanes of loop "{stage.lanes}" sum apart already'
            )  # fmt: skip
            raise ScheduleError(
                reason, step=self.call(), stage=stage.name,
                program=state.text(stage.name, {it.name}),
            )  # fmt: skip
        at_least(1, self.lanes, self, state)
        lanes, decisions = opened(self._column, self.lanes)
        state = split_into(state, self, it, (lanes,), "guard")
        split = replace(state.stage(self.stage), lanes=f"{self.iter}.1")
        return state.replace_stage(split).open(*decisions)

    def call(self) -> str:
        return f"state, _ = state.split_lanes({self.stage!r}, {self.iter!r}, {printed(self.lanes)})"

    def resolve(self, values: Mapping[str, int]) -> SplitLanesStep:
        return replace(self, lanes=chosen(self._column, self.lanes, values))

    def numbers(self) -> dict[str, int]:
        return numbered(self._column, self.lanes)

    def skeleton(self) -> SplitLanesStep:
        return replace(self, lanes=0)
