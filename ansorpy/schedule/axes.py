"""Axis values as expressions of the current loops, from a stage's split and fuse relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansorpy.ir.expr import Axis, Compare, CompareOp, Expr, as_expr
from ansorpy.schedule.decisions import Product
from ansorpy.schedule.size import split_extents
from ansorpy.schedule.stage import FuseRelation, SplitRelation, Stage

__all__ = ["axis_exprs", "iter_extents", "number", "overshoot"]


def number(product: Product) -> int:
    """The value of a product without open columns."""
    total = 1
    for factor in product:
        assert isinstance(factor, int), f"{factor} is still open"
        total *= factor
    return total


def iter_extents(stage: Stage, roots: Mapping[str, int]) -> dict[str, int]:
    """Extent of every loop that ever existed in *stage*, with its axes running over *roots*."""
    extents = dict(roots)
    for relation in stage.relations:
        if isinstance(relation, SplitRelation):
            factors = [number(p) for p in relation.factors]
            for child, part in zip(
                relation.children, split_extents(extents[relation.parent], factors), strict=True
            ):
                assert isinstance(part, int)
                extents[child] = part
        else:
            total = 1
            for parent in relation.parents:
                total *= extents[parent]
            extents[relation.child] = total
    return extents


def axis_exprs(
    stage: Stage, leaves: Mapping[str, Expr], extents: Mapping[str, int] | None = None
) -> dict[str, Expr]:
    """Value of every axis (and intermediate loop) of *stage*, given those of its current loops."""
    extents = iter_extents(stage, stage.root_extents) if extents is None else extents
    values: dict[str, Expr] = dict(leaves)
    for relation in reversed(stage.relations):
        if isinstance(relation, SplitRelation):
            value = values[relation.children[0]]
            for child in relation.children[1:]:
                value = value * extents[child] + values[child]
            values[relation.parent] = value
        else:
            _unfuse(relation, values, extents)
    return values


def _unfuse(relation: FuseRelation, values: dict[str, Expr], extents: Mapping[str, int]) -> None:
    rest = values[relation.child]
    for parent in reversed(relation.parents[1:]):
        values[parent] = rest % as_expr(extents[parent])
        rest = rest // as_expr(extents[parent])
    values[relation.parents[0]] = rest


def overshoot(
    stage: Stage, values: Mapping[str, Expr], axes: Sequence[Axis]
) -> list[Expr]:
    """``axis < extent`` for every axis whose splits do not divide it."""
    extents = iter_extents(stage, stage.root_extents)
    return [
        Compare(CompareOp.LT, values[axis.name], as_expr(axis.extent))
        for axis in axes
        if covered(stage, axis.name, extents) > axis.extent
    ]


def covered(stage: Stage, name: str, extents: Mapping[str, int]) -> int:
    """How far the loops that make up *name* reach: its extent, or more where a split overshoots."""
    for relation in stage.relations:
        if isinstance(relation, SplitRelation) and relation.parent == name:
            reach = covered(stage, relation.children[0], extents)
            for child in relation.children[1:]:
                reach *= covered(stage, child, extents)
            return reach
        if isinstance(relation, FuseRelation) and name in relation.parents:
            fused = covered(stage, relation.child, extents)
            others = 1
            for parent in relation.parents:
                others *= extents[parent] if parent != name else 1
            first = name == relation.parents[0]
            return -(-fused // others) if first else extents[name]
    return extents[name]
