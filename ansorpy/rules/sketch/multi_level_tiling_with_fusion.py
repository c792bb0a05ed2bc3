"""The rule that tiles a stage and computes each tile where its consumer needs it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.predicates import (
    fusible_consumer,
    has_data_reuse,
)
from ansorpy.rules.tiling.levels import follow_tile, multi_level_tile, space_splits
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.stage import KernelStyle
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["MultiLevelTilingWithFusion"]


@dataclass(frozen=True)
class MultiLevelTilingWithFusion(SketchRule):
    """Tile a stage and its consumer alike, and attach the stage inside the consumer's tiles.

    One sketch per entry of ``levels``: the stage is computed inside that many space levels.

        for i, j, k: C[i, j] += ...        for i.0, j.0:
        for i, j: D[i, j] = f(C[i, j])       for (tile of C): C[...] += ...
                                     -->     for i.1, j.1: D[...] = f(C[...])

    With ``ragged``, tiles need not divide the axes; the consumer's last tiles are shifted to fit.
    The stage itself computes whole tiles into memory of its own, so nothing is summed twice.
    With ``cover``, the last tiles skip elements outside the axes.  With ``exclusive``, as on GPUs,
    the stage is not also tried in tiles of its own, apart from its consumer.  A ``kernel_style``
    is recorded for the consumer, which is then launched as a kernel.

    Paper: OSDI'20 §4.1, Table 1 rule 4.  All levels and ``max_innermost`` are TVM's.
    Differs: with ``whole_epilogue`` only reductions are tiled, and inlined readers count as part
    of the one remaining consumer.
    """

    tile_levels: str = "SSRSRS"
    levels: tuple[int, ...] = (1, 2)
    max_innermost: int = 64
    ragged: bool = False
    cover: bool = False
    whole_epilogue: bool = False
    exclusive: bool = False
    kernel_style: KernelStyle | None = None

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        stage = state.stage(stage_id)
        if not has_data_reuse(state, stage):
            return Verdict.skip("its inputs are not re-read enough to tile")
        if self.whole_epilogue and not stage.compute.reduce_axes:
            return Verdict.skip("it does not reduce: no tile of sums to keep in registers")
        consumer = fusible_consumer(state, stage, once_inlined=self.whole_epilogue)
        if consumer is None:
            return Verdict.skip("no single consumer reads it element by element")
        reason = f'"{consumer.name}" can take over its tiles'
        if self.exclusive or stage.is_write_cache:
            return Verdict.apply_and_skip_rest(reason)
        return Verdict.apply(reason)

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        name = state.stage(stage_id).name
        stage = state.stage(stage_id)
        consumer = fusible_consumer(state, stage, once_inlined=self.whole_epilogue)
        assert consumer is not None, name
        tiled = multi_level_tile(
            state, name, self.tile_levels, self.max_innermost, ragged=self.ragged, cover=self.cover
        )
        n_space = len(space_splits(tiled.stage(name)))
        for level in self.levels:
            if self.tile_levels[level - 1] != "S":
                continue
            followed = follow_tile(tiled, consumer.name, name, level)
            host = followed.stage(consumer.name).iters[level * n_space - 1]
            placed = followed.compute_at(name, consumer.name, host)
            if self.kernel_style is not None:
                placed = placed.set_kernel_style(consumer.name, self.kernel_style.value)
            yield placed, stage_id - 1
