"""How many blocks of threads should share one reduction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from ansorpy.ir.analysis.access import accesses
from ansorpy.ir.expr import Axis
from ansorpy.rules.gpu.mma_choice import MmaChoice, best_choice, has_mma_sync, may_round
from ansorpy.rules.predicates import has_data_reuse, reduce_extent
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["ReductionParts"]


@dataclass(frozen=True)
class ReductionParts:
    """Into how many parts to cut a reduction, each with its own blocks, so that the grid is full.

    The largest number is that with which the largest tiles, one for each multiprocessor, cover the
    partial sums; the smallest is ``range`` times smaller, for smaller tiles.  No part is shorter
    than ``least`` steps.  A product's parts are equal, and whole fragments of tensor cores if
    possible.  Other sums are cut into powers of two as well, the last part being shorter.

    Args:
        tile: Sides of the largest tile of a product, as far as its operands are as long.
        tensor_tile: The same on tensor cores.
        blocks: Blocks for each multiprocessor if each result of a sum takes a block.
        range: The largest number of parts divided by the smallest.
        least: Steps of the shortest part of a product: fewer are not worth storing a partial sum.
        least_sum: The same for other sums.
        most: Maximum number of parts of a product.
        most_sums: The same for other sums.
        long: In other sums, an axis with at least this extent is split before longer ones inside
            it, so that blocks read whole rows.
    """

    tile: tuple[int, int] = (128, 128)
    tensor_tile: tuple[int, int] = (128, 256)
    blocks: int = 4
    range: int = 8
    least: int = 64
    least_sum: int = 512
    most: int = 64
    most_sums: int = 256
    long: int = 128

    def axis(self, state: State, stage: Stage) -> Axis:
        """The reduce axis of *stage* to split: the longest, or the outermost long one of a sum."""
        axes = stage.compute.reduce_axes
        longest = max(axes, key=lambda axis: axis.extent)
        if has_data_reuse(state, stage):
            return longest
        return next((axis for axis in axes if axis.extent >= self.long), longest)

    def most_that_fill(self, state: State, stage: Stage, target: Target) -> float:
        """The number of parts with which the largest tiles cover each multiprocessor once."""
        if not has_data_reuse(state, stage):
            return self.blocks * target.cores / stage.op.size
        return target.cores * prod(self._sides(stage, target)) / stage.op.size

    def counts(self, state: State, stage: Stage, target: Target) -> list[int]:
        """The numbers of parts, each more than one, in ascending order; empty if none is useful.

        If no number in the range is possible, it is the largest possible one below the range.
        """
        is_product = has_data_reuse(state, stage)
        steps = reduce_extent(stage) // (self.least if is_product else self.least_sum)
        fill = self.most_that_fill(state, stage, target)
        most = min(fill, steps, self.most if is_product else self.most_sums)
        axis, multiply = self.axis(state, stage), _on_tensor_cores(stage, target)
        found = sorted(set(_possible(axis.extent, int(most), equal=is_product)))
        if multiply is not None and multiply.depth is axis:
            steps = multiply.by.pattern.reduce_axes[0].extent
            found = [n for n in found if axis.extent // n % steps == 0] or found
        wanted = [n for n in found if n >= min(fill, most) / self.range]
        return wanted or found[-1:]

    def _sides(self, stage: Stage, target: Target) -> tuple[int, int]:
        """Sides of the largest tile of a product.

        An operand limits the side along which its elements are used again.
        """
        op = stage.compute
        apart = {(access.tensor, access.moving) for access in accesses(op)}
        again = sorted(prod(a.extent for a in op.axes if a not in moving) for _, moving in apart)
        rows, columns = ([n for n in again if n > 1] + [1, 1])[:2]
        most = self.tile if _on_tensor_cores(stage, target) is None else self.tensor_tile
        return min(rows, most[0]), min(columns, most[1])


def _on_tensor_cores(stage: Stage, target: Target) -> MmaChoice | None:
    """How tensor cores can compute the sum *stage*; None if they cannot."""
    found = best_choice(stage.op) if has_mma_sync(target) else None
    return None if found is None or not may_round(stage.compute, found) else found


def _possible(extent: int, most: int, *, equal: bool) -> Iterator[int]:
    """Numbers of parts from 2 to *most* into which an axis of *extent* can be split."""
    for parts in range(2, min(most, extent) + 1):
        if extent % parts == 0:
            yield parts
        elif not equal and parts & (parts - 1) == 0:
            # As many parts as there are when all but the last are of this length.
            yield -(-extent // -(-extent // parts))
