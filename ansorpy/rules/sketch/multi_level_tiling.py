"""The rule that tiles a stage with data reuse."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.matching.rowwise import contiguous_reduction, fills_lanes, streams
from ansorpy.rules.predicates import has_data_reuse
from ansorpy.rules.tiling.levels import multi_level_tile
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["MultiLevelTiling"]


@dataclass(frozen=True)
class MultiLevelTiling(SketchRule):
    """Tile a stage with data reuse, one level per letter of ``tile_levels``.

    ``S`` splits every space iterator once more, ``R`` every reduce iterator.  Sizes stay open.
    With ``tile_levels="SRS"``:

        for i, j, k:                 for i.0, j.0, k, i.1, j.1:
          C[i, j] += ...       -->     C[...] += ...

    Paper: OSDI'20 §4.1, Table 1 rule 3.  Levels and ``max_innermost`` are TVM's.  Differs:
    with ``reductions_only``, a stage that does not reduce is not tiled, whatever it broadcasts (a
    scale and a shift), so that it can follow the tiles of its producer; and a stage that streams
    its largest input along the reduction is tried untiled as well.  ``cover``: see
    MultiLevelTilingWithFusion.
    """

    tile_levels: str = "SSRSRS"
    max_innermost: int = 64
    reductions_only: bool = False
    cover: bool = False

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        if not has_data_reuse(state, state.stage(stage_id)):
            return Verdict.skip("its inputs are not re-read enough to tile")
        stage = state.stage(stage_id)
        if self.reductions_only and not stage.compute.reduce_axes:
            return Verdict.skip("it does not reduce: no tile of sums to keep in registers")
        may_stream = self.reductions_only and streams(state, stage)
        if may_stream and fills_lanes(state, stage, contiguous_reduction(state, stage), target):
            return Verdict.apply("broadcast inputs; the largest may be summed in lanes instead")
        return Verdict.apply_and_skip_rest("broadcast inputs: tiles can be reused")

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        name = state.stage(stage_id).name
        tiled = multi_level_tile(
            state, name, self.tile_levels, self.max_innermost, cover=self.cover
        )
        yield tiled, stage_id - 1
