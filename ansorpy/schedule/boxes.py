"""Tiles that a GPU's copy engine can copy: boxes of a tensor, with zeros beyond its ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.expr import Axis, Const, Load
from ansorpy.ir.loops import Scope

if TYPE_CHECKING:
    from ansorpy.schedule.stage import Stage
    from ansorpy.schedule.state import State

__all__ = ["is_box"]

MOST_DIMS = 5
"""The most dimensions of a tensor that the copy engine reads (CUDA, ``cuTensorMapEncodeTiled``)."""

ROW_BYTES = 16
"""Rows of the tensor start at multiples of this number."""


def is_box(state: State, tile: Stage) -> bool:
    """Whether *tile* is swizzled and copies a dense tensor, along whole dimensions.

    Each index is one of the tile's axes, as long as that dimension, or a number; the tile's last
    axis indexes the last dimension.
    """
    if tile.scope is not Scope.SHARED or not tile.swizzle:
        return False
    op = state.inlined_dag.ops[tile.name]
    load = op.body
    if not isinstance(load, Load) or not 2 <= len(load.indices) <= MOST_DIMS:
        return False
    source, shape = load.source, load.source.shape
    if source.name in state.current_dag.strides or not isinstance(shape[-1], int):
        return False
    if shape[-1] * source.dtype.bytes % ROW_BYTES or load.indices[-1] is not op.axes[-1]:
        return False
    found = [linear(index).to_expr() for index in load.indices]
    axes = [index for index in found if isinstance(index, Axis)]
    return (
        set(op.axes) == set(axes)
        and len(axes) == len(op.axes)
        and all(
            isinstance(index, Const) or (isinstance(index, Axis) and index.extent == extent)
            for index, extent in zip(found, shape, strict=True)
        )
    )
