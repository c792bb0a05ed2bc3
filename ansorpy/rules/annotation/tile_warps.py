"""Draw the tiles of tensor-core kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.ir.fragments import fragment_registers
from ansorpy.ir.loops import Scope
from ansorpy.rules.annotation.extents import column_of, set_column
from ansorpy.rules.base import AnnotationRule
from ansorpy.rules.gpu.block_tiles import BlockLimits, draw_block_tiles
from ansorpy.rules.gpu.warp_tiling import team_of, warp_factors, warp_sum
from ansorpy.rules.matching.kernels import kernels_in
from ansorpy.rules.tiling.roundness import draw_splits
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.space import Constraint, Space, Table
from ansorpy.schedule.stage import KernelStyle, Stage
from ansorpy.schedule.state import State
from ansorpy.schedule.tables.size import Size, at_most
from ansorpy.target import Target

__all__ = ["TileWarps"]

CONFLICT_FREE = 16
"""Bytes of padding after rows of a power-of-two length.

Reading 16 bytes of each of eight rows then uses every bank once.
"""


@dataclass(frozen=True)
class TileWarps(AnnotationRule):
    """Limit the teams (warps or warpgroups) of a block, and sample tiles that fit in registers.

    The rows of shared tiles from which warps load fragments are padded into different banks.

    Differs: Ansor has no such kernels.

    Args:
        most_sums: Most registers per lane that hold sums, in sampled rows.
        redraws: How often rows that violate a constraint are redrawn.
    """

    most_sums: int = 128
    redraws: int = 12

    def declare(self, space: Space, target: Target) -> Space:
        constraints = list(space.constraints)
        for stage in _sums(space.state):
            constraints.append(_limit_teams(stage, target.max_threads_per_block // team_of(stage)))
        return Space(space.state, tuple(constraints))

    def sample(self, space: Space, table: Table, target: Target, rng: np.random.Generator) -> Table:
        sums, chains = _sums(space.state), _chains(space.state)
        if not sums and not chains:
            return table
        table = self._drawn(space, sums, table, target, rng)
        for _ in range(self.redraws):
            rows = np.flatnonzero(~space.valid(table))
            if not len(rows):
                break
            table[rows] = self._drawn(space, sums, space.sample(len(rows), rng), target, rng)
        return table

    def _drawn(
        self, space: Space, sums: Sequence[Stage], table: Table, target: Target,
        rng: np.random.Generator,
    ) -> Table:  # fmt: skip
        for stage in sums:
            # A block's teams count as virtual threads here, and a team's fragments as threads.
            assert stage.fragment is not None, stage.name
            teams = target.max_threads_per_block // team_of(stage)
            fragments = max(1, self.most_sums // fragment_registers(stage.fragment))
            limits = BlockLimits(1, fragments, teams, 1 << 31, 1)
            table = draw_block_tiles(space, stage, table, limits, rng)
            table = draw_splits(space, table, rng, of=stage)
        for stage in (*sums, *_chains(space.state)):
            for tile in _tiles(space.state, stage):
                table = _pad_rows(space, table, tile)
        return table


def _tiles(state: State, total: Stage) -> list[Stage]:
    """The unswizzled shared tiles from which warps load operands of the sum."""
    around = () if total.attach is None else state.attached(total.attach.stage)
    inside = (*around, *state.attached(total))
    found = [stage for stage in inside if stage.scope is Scope.SHARED]
    return [stage for stage in found if not stage.swizzle]


def _pad_rows(space: Space, table: Table, tile: Stage) -> Table:
    """*table* with the tile's rows padded by :data:`CONFLICT_FREE` bytes, if that is a choice."""
    column, wanted = column_of(tile.pad), CONFLICT_FREE // tile.op.dtype.bytes
    for decision in space.decisions:
        if column in decision.columns and [wanted] in decision.domain.rows.tolist():
            return set_column(space, table, column, np.full(len(table), wanted))
    return table


def _sums(state: State) -> list[Stage]:
    return [warp_sum(state, kernel) for kernel in kernels_in(state, KernelStyle.TENSOR_CORES)]


def _chains(state: State) -> list[Stage]:
    """The sums in whose loops warps compute rows of whole chains."""
    return [warp_sum(state, kernel) for kernel in kernels_in(state, KernelStyle.ROWS_IN_WARPS)]


def _limit_teams(stage: Stage, most: int) -> Constraint:
    factors = warp_factors(stage)

    def holds(bounds: Bounds) -> Size:
        warps = bounds.number(factors)
        return at_most(warps, most)

    return Constraint(f"{stage.name}.warps", holds)
