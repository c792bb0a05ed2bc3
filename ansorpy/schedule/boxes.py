"""Tiles that a GPU's copy engine can copy: boxes of a tensor, with zeros beyond its ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.expr import Axis, Expr, Load
from ansorpy.ir.extents import Extent
from ansorpy.ir.loops import Scope
from ansorpy.schedule.stage import SplitRelation

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
    axis indexes the last dimension.  An index may also be an axis within one of several equal parts
    of the dimension, if no tile contains steps of two parts.
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
    near = linear(load.indices[-1]).terms.get(op.axes[-1])
    if shape[-1] * source.dtype.bytes % ROW_BYTES or near != 1:
        return False
    axes: list[Axis] = []
    for index, extent in zip(load.indices, shape, strict=True):
        found = _axes_of(state, tile, index, extent)
        if found is None:
            return False
        axes += found
    return set(op.axes) == set(axes) and len(axes) == len(op.axes)


def _axes_of(state: State, tile: Stage, index: Expr, extent: Extent) -> list[Axis] | None:
    """The axes of *tile* that index a dimension of *extent*; None if some box would not be one."""
    found = linear(index)
    axes = [atom for atom in found.terms if isinstance(atom, Axis)]
    if len(axes) != len(found.terms) or axes and found.const:
        return None
    steps = sorted((found.terms[axis], axis.extent, n) for n, axis in enumerate(axes))
    match steps:
        case []:
            return axes
        case [(1, length, _)] if length == extent:
            return axes
        case [(1, length, n), (step, parts, _)] if step == length and parts * length == extent:
            return axes if _ends_with_parts(state, tile, axes[n]) else None
    return None


def _ends_with_parts(state: State, tile: Stage, axis: Axis) -> bool:
    """Whether the steps along *axis* of the sums that read *tile* are cut into whole tiles."""
    readers = [state.stage(op.name) for op in state.current_dag.readers(tile.op)]
    return all(
        relation.tail == "guard"
        for reader in readers
        for relation in reader.relations
        if isinstance(relation, SplitRelation) and relation.parent == axis.name
    )
