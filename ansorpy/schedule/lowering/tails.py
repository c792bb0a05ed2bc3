"""Second bodies: smaller tiles for splits whose tiles do not divide the axis.

``even`` and ``peel`` split ``extent`` into ``first`` tiles of the scheduled size and others that
are smaller; each size has its own body.  Tiles never overlap, so they may be distributed over
threads in any way, and no tile runs beyond the axis, so no guard is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from ansorpy.errors import ScheduleError
from ansorpy.ir.expr import Binary, BinaryOp, Expr
from ansorpy.ir.extents import Extent
from ansorpy.ir.loops import ForKind
from ansorpy.ir.sizes import fixed
from ansorpy.schedule.bounds.axes import is_ragged, number, shifted
from ansorpy.schedule.stage import SplitRelation, Stage
from ansorpy.schedule.tables.size import split_extents

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["SecondBody", "refuse_unsafe_shifts", "second_body"]

_CPU_KINDS = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.UNROLLED)


@dataclass(frozen=True)
class SecondBody:
    """Tiles ``first .. count - 1`` of *relation* have *size* elements, the others have *tile*."""

    relation: SplitRelation
    count: int
    first: int
    tile: int
    size: int
    extents: tuple[int, ...]
    """Extents of the loops inside a tile, ``relation.children[1:]``, in the second body."""

    def start(self, n: Expr) -> Expr:
        """The start of tile *n*, in either body."""
        whole = n * self.tile
        if self.first + 1 == self.count:
            return whole
        return Binary(BinaryOp.MIN, whole, n * self.size + self.first * (self.tile - self.size))

    def ranges(self, *, second: bool) -> tuple[tuple[int, int], tuple[int, int]]:
        """Intervals of the tile numbers and of the tile starts of one body."""
        low, high = (self.first, self.count - 1) if second else (0, self.first - 1)
        step = self.size if second else self.tile
        origin = self.first * (self.tile - self.size) if second else 0
        return (low, high), (origin + low * step, origin + high * step)


def second_body(
    stage: Stage, extents: Mapping[str, Extent], kinds: Mapping[str, ForKind]
) -> SecondBody | None:
    """The second body that *stage* needs, if one of its splits has two bodies.

    Raises:
        ScheduleError: The loops inside a tile do not fit the smaller tiles, or the tile loops were
            fused, split or made parallel.
    """
    found = [r for r in stage.relations if is_ragged(r, extents) and r.two_bodies]
    assert len(found) < 2, stage.name
    return _planned(stage, found[0], extents, kinds) if found else None


def _planned(
    stage: Stage,
    relation: SplitRelation,
    extents: Mapping[str, Extent],
    kinds: Mapping[str, ForKind],
) -> SecondBody:
    outer, *inner = relation.children
    extent, tile = extents[relation.parent], prod(fixed(extents[c]) for c in inner)
    if not isinstance(extent, int):
        raise ScheduleError(
            f'the tiles of "{relation.parent}", whose extent is {extent}, cannot have two bodies',
            stage=stage.name, hint='use tail="guard" or "shift"',
        )  # fmt: skip
    count = -(-extent // tile)
    first = extent // tile if relation.tail == "peel" else extent - count * (tile - 1)
    size = extent % tile if relation.tail == "peel" else tile - 1
    if first < 1:
        raise ScheduleError(
            f"{count} tiles of {tile} and {size} elements exceed the {extent} iterations",
            stage=stage.name, hint=f"use tiles of {-(-extent // count)}, or another tail",
        )  # fmt: skip
    factors = [number(p) for p in relation.factors[1:]]
    parts = [p for p in split_extents(size, factors) if isinstance(p, int)]
    if prod(parts) != size:
        raise ScheduleError(
            f'the loops inside a tile of "{relation.parent}" cannot make the smaller tile of '
            f"{size}: their factors do not divide it",
            stage=stage.name, hint="make the tile one loop, or use another tail",
        )  # fmt: skip
    _require_order(stage, relation, kinds)
    return SecondBody(relation, count, first, tile, size, tuple(parts))


def _require_order(stage: Stage, relation: SplitRelation, kinds: Mapping[str, ForKind]) -> None:
    """Check that the tile loop is still a loop, around the loops of a tile."""
    outer, *inner = relation.children
    names = [it.name for it in stage.iters]
    inside = set(names[names.index(outer) :]) if outer in names else set()
    nest = names.index(outer) if outer in names else 0
    while nest < len(names) and kinds[names[nest]] is ForKind.PARALLEL:
        nest += 1
    shared = set(names[:nest]) & set(inner)
    if not set(inner) <= inside or shared or kinds[outer] not in _CPU_KINDS:
        raise ScheduleError(
            f'two bodies of tiles of "{relation.parent}" need the loop "{outer}" around the loops '
            "of a tile, none of them fused, split or run with it in parallel",
            stage=stage.name, hint='use tail="guard" or "shift"',
        )  # fmt: skip


def refuse_unsafe_shifts(
    state: State, stage: Stage, extents: Mapping[str, Extent], kinds: Mapping[str, ForKind]
) -> None:
    """Refuse a shifted tail, which repeats iterations, if it would add a term to a sum twice."""
    if not stage.reduce_iters:
        return
    counting = {r.children[0] for r in shifted(stage, extents)}
    outside = {it.name for it in stage.iters[: stage.index(stage.reduce_iters[0].name)]}
    together = {n for n, k in kinds.items() if k in (ForKind.PARALLEL, ForKind.VECTORIZED)}
    if not counting <= outside - together:
        raise ScheduleError(
            "a shifted tail repeats part of a sum that another thread, lane or iteration adds to",
            stage=stage.name, program=state.text(stage.name, counting),
            hint="cache_write the stage and shift the copy, or split by factors that divide",
        )  # fmt: skip
