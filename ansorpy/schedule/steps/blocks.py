"""Steps for GPU blocks: splits by a chosen number, padded tiles, and pipelined copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from ansorpy.errors import ScheduleError
from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import Scope
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

__all__ = ["PadStep", "PipelineStep", "SplitByStep"]


@dataclass(frozen=True)
class SplitByStep(Step):
    """Split *iter* in two, the inner part of *number* iterations; it need not divide the loop.

    Unlike a split's open factors, the values of a choice do not depend on the loop's extent: the
    threads of a block, the elements of one load.  For a shorter loop the number is cut down to its
    extent, unless *tail* is ``whole``.
    """

    iter: str
    number: Count
    tail: Literal["guard", "whole"] = "guard"
    kind: Literal["split_by"] = field(default="split_by")

    @property
    def _column(self) -> str:
        return f"{self.stage}.{self.iter}/1"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        it = stage.iter(self.iter)
        at_least(1, self.number, self, state)
        number, decisions = opened(self._column, self.number)
        return split_into(state, self, it, (number,), self.tail).open(*decisions)

    def call(self) -> str:
        options = "" if self.tail == "guard" else f", tail={self.tail!r}"
        number = printed(self.number)
        return f"state, _ = state.split_by({self.stage!r}, {self.iter!r}, {number}{options})"

    def resolve(self, values: Mapping[str, int]) -> SplitByStep:
        return replace(self, number=chosen(self._column, self.number, values))

    def numbers(self) -> dict[str, int]:
        return numbered(self._column, self.number)

    def skeleton(self) -> SplitByStep:
        return replace(self, number=0)


@dataclass(frozen=True)
class PadStep(Step):
    """Leave *number* elements unused after each row of the stage's tile in shared memory.

    The elements of a column then lie in different banks.
    """

    number: Count
    kind: Literal["pad"] = field(default="pad")

    @property
    def _column(self) -> str:
        return f"{self.stage}.pad"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        if stage.scope is not Scope.SHARED:
            raise ScheduleError(
                "only tiles in shared memory are padded",
                step=self.call(), stage=stage.name, program=state.text(stage.name),
                hint='make it with cache_read(..., "shared", ...)',
            )  # fmt: skip
        at_least(0, self.number, self, state)
        pad, decisions = opened(self._column, self.number)
        return state.replace_stage(replace(stage, pad=pad)).open(*decisions)

    def call(self) -> str:
        return f"state = state.pad({self.stage!r}, {printed(self.number)})"

    def resolve(self, values: Mapping[str, int]) -> PadStep:
        return replace(self, number=chosen(self._column, self.number, values))

    def numbers(self) -> dict[str, int]:
        return numbered(self._column, self.number)

    def skeleton(self) -> PadStep:
        return replace(self, number=0)


@dataclass(frozen=True)
class PipelineStep(Step):
    """Copy the shared tiles of loop *iter* up to ``depth - 1`` iterations before they are read.

        for k:                            copy(tile[0]); copy(tile[1]) ...
          tile = A[k]               -->   for k:
          use(tile)                         wait for tile[k % depth]
                                            copy(tile[(k + depth - 1) % depth])
                                            use(tile[k % depth])

    A depth of 1 changes nothing.  There are at most as many instances as iterations.
    """

    iter: str
    depth: Count
    kind: Literal["pipeline"] = field(default="pipeline")

    @property
    def _column(self) -> str:
        return f"{self.stage}.pipeline"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        if stage.iter(self.iter).kind is not AxisKind.REDUCE:
            raise ScheduleError(
                "only a reduce loop of one thread block after the other is a pipeline",
                step=self.call(), stage=stage.name,
                program=state.text(stage.name, {self.iter}),
            )  # fmt: skip
        at_least(1, self.depth, self, state)
        depth, decisions = opened(self._column, self.depth)
        return state.replace_stage(replace(stage, pipeline=(self.iter, depth))).open(*decisions)

    def call(self) -> str:
        return f"state = state.pipeline({self.stage!r}, {self.iter!r}, {printed(self.depth)})"

    def resolve(self, values: Mapping[str, int]) -> PipelineStep:
        return replace(self, depth=chosen(self._column, self.depth, values))

    def numbers(self) -> dict[str, int]:
        return numbered(self._column, self.depth)

    def skeleton(self) -> PipelineStep:
        return replace(self, depth=0)
