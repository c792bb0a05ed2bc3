"""Conditions on axes: their conjuncts, and how often they hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np

from ansorpy.arrays import Masks
from ansorpy.ir.expr import (
    Axis,
    Binary,
    BinaryOp,
    Const,
    Expr,
    Reduce,
    Select,
    has_load,
    walk,
)
from ansorpy.ir.interpret.evaluate import Evaluator, Frame, Mask
from ansorpy.ir.interpret.numerics import Value
from ansorpy.ir.sizes import fixed

__all__ = ["choices", "conjuncts", "held_at", "least_added", "share_held", "skip_condition"]

_MOST_POINTS = 1 << 22


def conjuncts(condition: Expr) -> list[Expr]:
    """The conditions that *condition* is the conjunction of, in order."""
    if isinstance(condition, Binary) and condition.op is BinaryOp.AND:
        return [*conjuncts(condition.a), *conjuncts(condition.b)]
    return [condition]


def skip_condition(reduction: Reduce) -> Expr | None:
    """The condition under which *reduction* adds a term; None if there is none or it loads."""
    source = reduction.source
    if not isinstance(source, Select) or not isinstance(source.other, Const):
        return None
    skips = source.other.value == reduction.kind.identity(reduction.dtype)
    return source.cond if skips and not has_load(source.cond) else None


@lru_cache(maxsize=1024)
def choices(body: Expr) -> tuple[Expr, ...]:
    """The conditions of the selects in *body* that load nothing; not that under which it adds."""
    skipped = skip_condition(body) if isinstance(body, Reduce) else None
    found = dict.fromkeys(e.cond for e in walk(body) if isinstance(e, Select))
    return tuple(cond for cond in found if cond is not skipped and not has_load(cond))


def least_added(reduction: Reduce) -> float:
    """The least fraction of its terms that a program of *reduction* adds; 0 if unknown."""
    source = reduction.source
    if not any(isinstance(e, Select) for e in walk(source)):
        return 1.0
    condition = skip_condition(reduction)
    if not isinstance(source, Select) or condition is None:
        return 0.0
    if any(isinstance(e, Select) for e in walk(source.then)):
        return 0.0
    return share_held(condition, unknown=0.0)


@lru_cache(maxsize=1024)
def share_held(*conditions: Expr, unknown: float = 1.0) -> float:
    """The fraction of the axes' values for which all *conditions* hold; they must not load.

    Conjuncts with no axis in common are independent of each other.  The result is exact, except
    that the conditions of a group of axes with more than four million values count as *unknown*.

    >>> from ansorpy.ir.expr import AxisKind
    >>> h, k = Axis("h", 7, AxisKind.SPACE), Axis("k", 3, AxisKind.REDUCE)
    >>> share_held(h + k >= 1, h + k < 8)
    0.9047619047619048
    """
    share = 1.0
    for axes, parts in _independent([part for c in conditions for part in conjuncts(c)]):
        is_known = prod(fixed(axis.extent) for axis in axes) <= _MOST_POINTS
        share *= float(held_at(axes, parts).mean()) if is_known else unknown
    return share


def held_at(axes: Sequence[Axis], conditions: Sequence[Expr]) -> Masks:
    """An array, with one dimension per axis, that is True where all *conditions* hold.

    The conditions use no other axes.
    """
    grids = np.ogrid[tuple(slice(axis.extent) for axis in axes)] if axes else []
    frame, evaluator = Frame(dict(zip(axes, grids, strict=True))), _NoLoads()
    held = np.ones([fixed(axis.extent) for axis in axes], dtype=np.bool_)
    for condition in conditions:
        held = held & evaluator.value(condition, frame)
    return held


def _independent(conditions: Sequence[Expr]) -> list[tuple[tuple[Axis, ...], list[Expr]]]:
    """Groups of conditions that share axes, directly or through other conditions."""
    groups: list[tuple[tuple[Axis, ...], list[Expr]]] = []
    for condition in conditions:
        axes = dict.fromkeys(e for e in walk(condition) if isinstance(e, Axis))
        apart = [group for group in groups if not axes.keys() & set(group[0])]
        joined = [group for group in groups if axes.keys() & set(group[0])]
        every = dict.fromkeys([*(a for group in joined for a in group[0]), *axes])
        parts = [c for group in joined for c in group[1]]
        groups = [*apart, (tuple(every), [*parts, condition])]
    return groups


class _NoLoads(Evaluator):
    def load(self, source: object, indices: tuple[Value, ...], frame: Frame, mask: Mask) -> Value:
        raise LookupError("a condition on axes alone loads nothing")
