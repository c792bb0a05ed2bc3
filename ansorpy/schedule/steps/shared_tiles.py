"""Steps for tiles in the shared memory of GPU blocks: padding, and copies ahead of use."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import Scope
from ansorpy.schedule.boxes import is_box
from ansorpy.schedule.steps.base import Count, Step, choice, compute_stage, options

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["BulkStep", "PadStep", "PipelineStep"]


MOST_BLOCKS = 8
"""The most blocks of a cluster on every GPU that has them (CUDA C++ Programming Guide)."""


@dataclass(frozen=True)
class BulkStep(Step):
    """Let one thread of a block have the stage's tile copied as boxes of its source.

    The stage's loops are then not used.  Rows and columns of the tile must be whole dimensions of a
    dense tensor, so that what lies beyond its axes lies beyond the tensor, where boxes hold zeros.
    *number* is 0 (all threads copy the tile), 1, or the number of neighbouring blocks that share
    the copies which are the same for all of them.
    """

    number: Count = field(default=1, metadata=choice("{stage}.bulk", 0))
    kind: Literal["bulk"] = "bulk"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        most = max(options(self.number))
        if most > MOST_BLOCKS:
            raise self.error(state, f"{most} blocks cannot share a copy; the most is {MOST_BLOCKS}")
        if not is_box(state, stage):
            raise self.error(
                state, "the tile is not a swizzled box of a dense tensor",
                hint="rows of the source must have a multiple of 16 bytes",
            )  # fmt: skip
        [number] = self.products(state)
        return state.replace_stage(replace(stage, bulk=number))


@dataclass(frozen=True)
class PadStep(Step):
    """Leave *number* elements unused after each row of the stage's tile in shared memory.

    The elements of a column then lie in different banks.
    """

    number: Count = field(metadata=choice("{stage}.pad", 0))
    kind: Literal["pad"] = "pad"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        if stage.scope is not Scope.SHARED:
            raise self.error(
                state, "only tiles in shared memory are padded",
                hint='make it with cache_read(..., "shared", ...)',
            )  # fmt: skip
        [pad] = self.products(state)
        return state.replace_stage(replace(stage, pad=pad))


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
    depth: Count = field(metadata=choice("{stage}.pipeline", 1))
    kind: Literal["pipeline"] = "pipeline"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        if stage.iter(self.iter).kind is not AxisKind.REDUCE:
            raise self.error(state, "only a reduce loop can be pipelined", loops=[self.iter])
        [depth] = self.products(state)
        return state.replace_stage(replace(stage, pipeline=(self.iter, depth)))
