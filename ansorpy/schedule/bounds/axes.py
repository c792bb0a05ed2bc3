"""What a stage's split and fuse relations say of its loops.

Extents, axis values as expressions of the current loops, raggedness, fixed and unknown starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.expr import Binary, BinaryOp, Compare, CompareOp, Const, Expr, as_expr
from ansorpy.ir.extents import AnyExtent, Extent, Symbolic, extreme, prod_of
from ansorpy.ir.symbols import SizeOp
from ansorpy.schedule.decisions import Product, known, open_columns
from ansorpy.schedule.stage import FuseRelation, Relation, SplitRelation, Stage
from ansorpy.schedule.tables.size import (
    Size,
    above,
    at_most,
    both,
    fails,
    is_multiple,
    product,
    split_extents,
)

__all__ = [
    "axis_exprs", "guard", "has_fixed_part", "is_ragged", "iter_extents", "known_extents",
    "leaves_rest", "number", "overshoot", "ragged", "runs_in_full", "shifted",
]  # fmt: skip


def number(factors: Product) -> int:
    """The value of a product without open columns."""
    total = known(factors)
    assert total is not None, f"{open_columns(factors)} are still open"
    return total


def known_extents(extents: Mapping[str, Size]) -> dict[str, Extent]:
    """*extents*, none of which may depend on a column."""
    found: dict[str, Extent] = {}
    for name, size in extents.items():
        assert isinstance(size, int | Symbolic), f"{name} is still open"
        found[name] = size
    return found


def iter_extents(stage: Stage) -> dict[str, AnyExtent]:
    """Extent of every current or replaced loop of *stage*, when its axes run in full."""
    extents: dict[str, AnyExtent] = dict(stage.root_extents)
    for relation in stage.relations:
        if isinstance(relation, SplitRelation):
            factors = [number(p) for p in relation.factors]
            for child, part in zip(
                relation.children,
                split_extents(extents[relation.parent], factors, whole=relation.tail == "whole"),
                strict=True,
            ):
                assert isinstance(part, int | Symbolic)
                extents[child] = part
        else:
            extents[relation.child] = prod_of(extents[parent] for parent in relation.parents)
    return extents


def axis_exprs(
    stage: Stage,
    leaves: Mapping[str, Expr],
    extents: Mapping[str, Extent],
    starts: Mapping[str, Expr] | None = None,
) -> dict[str, Expr]:
    """Value of every axis (and intermediate loop) of *stage*, given those of its current loops.

    *starts* has the tile starts that are already bound to variables, by the parent of the split.
    """
    values: dict[str, Expr] = dict(leaves)
    for relation in reversed(stage.relations):
        if isinstance(relation, SplitRelation):
            value = _start(relation, values, extents, starts or {})
            for n, child in enumerate(relation.children[1:], start=2):
                value = value + values[child] * prod_of(extents[c] for c in relation.children[n:])
            values[relation.parent] = value
        else:
            _unfuse(relation, values, extents)
    return values


def _start(
    relation: SplitRelation,
    values: Mapping[str, Expr],
    extents: Mapping[str, Extent],
    starts: Mapping[str, Expr],
) -> Expr:
    """The start of the tile that the outermost loop of a split selects."""
    if relation.parent in starts:
        return starts[relation.parent]
    tile = prod_of(extents[c] for c in relation.children[1:])
    start = values[relation.children[0]] * tile
    if relation.tail != "shift" or not is_ragged(relation, extents):
        return start
    last = extents[relation.parent] - tile
    if isinstance(start, Const):
        return as_expr(extreme(SizeOp.MIN, int(start.value), last))
    return Binary(BinaryOp.MIN, start, as_expr(last))


def is_ragged(relation: Relation, extents: Mapping[str, Extent]) -> TypeGuard[SplitRelation]:
    """Whether *relation* is a split that is :func:`ragged`."""
    return isinstance(relation, SplitRelation) and ragged(relation, extents) == 1


def ragged(relation: SplitRelation, extents: Mapping[str, Size]) -> Size:
    """1 where tiles of ``shift``, ``even`` or ``peel`` do not divide the loop they split, else 0.

    It is 0 for a tile larger than the loop (in a box that compute_at shrank), which is guarded.
    """
    if relation.covers or relation.tail == "guard":
        return 0
    tile, extent = product(extents[c] for c in relation.children[1:]), extents[relation.parent]
    return both(at_most(tile - extent, 0), fails(is_multiple(extent, tile)))


def shifted(stage: Stage, extents: Mapping[str, Extent]) -> list[SplitRelation]:
    """The splits whose last tile starts early enough to fit, so that tiles overlap."""
    return [r for r in stage.relations if is_ragged(r, extents) and r.tail == "shift"]


def _unfuse(relation: FuseRelation, values: dict[str, Expr], extents: Mapping[str, Extent]) -> None:
    rest = values[relation.child]
    strip = _strip(relation, extents)
    for n, parent in reversed([*enumerate(relation.parents)][1:]):
        outer = relation.parents[:n]
        if isinstance(extents[parent], Symbolic) and all(extents[p] == 1 for p in outer):
            values.update({parent: rest, **dict.fromkeys(outer, as_expr(0))})
            return
        if strip > 1:
            inside, rest = rest % strip, rest // strip
        values[parent] = rest % as_expr(extents[parent])
        rest = rest // as_expr(extents[parent])
        if strip > 1:
            rest, strip = rest * strip + inside, 1
    values[relation.parents[0]] = rest


def _strip(relation: FuseRelation, extents: Mapping[str, Extent]) -> int:
    """How many iterations of the last loop but one of *relation* are taken together."""
    extent = extents[relation.parents[-2]]
    if not isinstance(extent, int):
        return 1
    return max(n for n in range(1, relation.together + 1) if extent % n == 0)


def overshoot(relation: SplitRelation, extents: Mapping[str, Size]) -> Size:
    """1 where the loops of a split run beyond the loop they split, so that guards skip the rest."""
    beyond = above(product(extents[c] for c in relation.children) - extents[relation.parent], 0)
    return both(beyond, fails(ragged(relation, extents)))


def runs_in_full(relation: SplitRelation, extents: Mapping[str, Size], *, launched: bool) -> bool:
    """Whether the loops of each tile run in full, even beyond the axis, in every thread.

    In a kernel (*launched*) that holds for each tile of an axis whose size depends on the call, as
    registers are not indexed at run time.
    """
    sized = launched and isinstance(extents[relation.parent], Symbolic)
    return relation.covers or (sized and ragged(relation, extents) != 1)


def guard(
    relation: SplitRelation, values: Mapping[str, Expr], extents: Mapping[str, Extent]
) -> Compare:
    """The condition ``loop < extent`` of a split, given the *values* of :func:`axis_exprs`."""
    loop = relation.parent
    return Compare(CompareOp.LT, linear(values[loop]).to_expr(), as_expr(extents[loop]))


def leaves_rest(extent: Size, tile: Size) -> bool:
    """Whether *tile* does not divide *extent*; open tiles are assumed to divide it."""
    known = isinstance(extent, int | Symbolic) and isinstance(tile, int)
    return known and is_multiple(extent, tile) == 0


def has_fixed_part(stage: Stage, loop: str, fixed: set[str]) -> bool:
    """Whether *loop*, or a loop split from it, is among the *fixed* ones."""
    names = {loop}
    for r in stage.relations:
        if isinstance(r, SplitRelation) and r.parent in names:
            names.update(r.children)
    return not names.isdisjoint(fixed)
