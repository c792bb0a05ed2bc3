"""What is known of loops whose factors may be open: raggedness, fixed and unknown starts."""

from __future__ import annotations

from ansorpy.ir.extents import Symbolic
from ansorpy.schedule.stage import FuseRelation, SplitRelation, Stage
from ansorpy.schedule.tables.size import Size, is_multiple

__all__ = ["is_ragged", "mark", "untouched"]


def is_ragged(extent: Size, tile: Size) -> bool:
    """Whether *tile* does not divide *extent*; open tiles are assumed to divide it."""
    known = isinstance(extent, int | Symbolic) and isinstance(tile, int)
    return known and is_multiple(extent, tile) == 0


def untouched(stage: Stage, relation: FuseRelation, fixed: set[str]) -> set[str]:
    """The fused loop, or nothing if a loop split from it is fixed outside the level."""
    names = {relation.child}
    for r in stage.relations:
        if isinstance(r, SplitRelation) and r.parent in names:
            names.update(r.children)
    return set() if names & fixed else {relation.child}


def mark(fixed: set[str], whole: set[str], parent: str, children: tuple[str, ...]) -> None:
    """Mark a split loop as fixed if all its parts are, and its start as unknown if a part's is."""
    if all(child in fixed for child in children):
        fixed.add(parent)
    if any(child in whole for child in children):
        whole.add(parent)
