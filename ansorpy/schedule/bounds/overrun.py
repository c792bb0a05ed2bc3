"""Reads of GPU threads that run beyond the ends of their axes.

If tiles do not divide an axis, such threads compute elements that nothing stores, and read boxes in
shared memory and registers at indices that no element needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ansorpy.ir.loops import ALONE, ForKinds
from ansorpy.schedule.bounds.spans import ZERO, Span, limits
from ansorpy.schedule.tables.size import Size, above, size_max, size_min

if TYPE_CHECKING:
    from ansorpy.schedule.bounds.inference import Bounds

__all__ = ["is_read_before_start", "read_beyond_end"]


def read_beyond_end(bounds: Bounds, name: str, dim: int, among: ForKinds) -> Size:
    """Number of elements of tensor *name* that such threads read after the end of a dimension.

    *among* is as in :meth:`~ansorpy.schedule.bounds.inference.Bounds.inside`.
    """
    last = bounds.state.stage(name).op.shape[dim] - 1
    beyond: Size = 0
    for (_, inside), (_, reached) in _limits(bounds, name, dim, among):
        beyond = size_max(beyond, reached - size_max(inside, last))
    return beyond


def is_read_before_start(bounds: Bounds, name: str) -> bool:
    """Whether such threads may read tensor *name* below index 0; no size may be a column."""
    for dim in range(len(bounds.state.stage(name).op.shape)):
        for (inside, _), (reached, _) in _limits(bounds, name, dim, ALONE):
            if above(size_min(inside, 0) - reached, 0) == 1:
                return True
    return False


def _limits(
    bounds: Bounds, name: str, dim: int, among: ForKinds
) -> Iterator[tuple[tuple[Size, Size], tuple[Size, Size]]]:
    """The least and greatest index of each read: within the reader's axes, and over all threads.

    Indices that depend on data have no limits, and are left out.
    """
    root = bounds.state.root_of(name).name
    for reader in bounds.inlined_dag.readers.get(name, ()):
        op, box = bounds.op(reader), bounds.box(reader, root, -1, among)
        axes = {a.name: Span(ZERO, a.extent, 0) for a in (*op.axes, *op.reduce_axes)}
        for indices in bounds.inlined_dag.index_tuples(reader, name):
            inside, reached = limits(indices[dim], op, axes), limits(indices[dim], op, box)
            if inside is not None and reached is not None:
                yield inside, reached
