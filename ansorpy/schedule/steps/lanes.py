"""The step that gives each lane of a vector a partial sum."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from ansorpy.ir.expr import AxisKind
from ansorpy.schedule.steps.base import Count, Step, choice, compute_stage
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
    unchanged.  This step changes the order of additions.
    """

    returns_names = True

    iter: str
    lanes: Count = field(metadata=choice("{stage}.lanes", 1))
    kind: Literal["split_lanes"] = "split_lanes"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        it = stage.iter(self.iter)
        if it.kind is not AxisKind.REDUCE or stage.lanes is not None:
            reason = (
                "only a reduce loop can have lanes with partial sums" if stage.lanes is None
                else f'the lanes of loop "{stage.lanes}" have partial sums already'
            )  # fmt: skip
            raise self.error(state, reason, loops=[it.name])
        state = split_into(state, self, it, self.products(state), "guard")
        return state.replace_stage(replace(state.stage(self.stage), lanes=f"{self.iter}.1"))
