"""The arena of a run on a GPU: allocated once, for the largest sizes."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.graph.memory import Slot
from ansorpy.ir.extents import most
from ansorpy.ir.strides import padded

__all__ = ["starts_of"]


def starts_of(slots: Sequence[Slot]) -> tuple[int, ...]:
    """Where each slot starts, in bytes, in an arena for the largest sizes."""
    starts: list[int] = []
    for slot in slots:
        ends = (starts[n] + padded(most(slots[n].size_bytes)) for n in slot.behind)
        starts.append(max(ends, default=0))
    return tuple(starts)
