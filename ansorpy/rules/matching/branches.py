"""Axes whose values select between formulas, and the tiles that make those selects constant.

Winograd's transforms select one linear combination per row; the stage that reassembles tiles
reads ``Y[h // 4, h % 4]``.  Once such an axis is unrolled, or its remainder is a loop of its own,
the condition is constant and the select folds away.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ansorpy.ir.analysis.affine import axes_in
from ansorpy.ir.expr import (
    Axis,
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Const,
    Expr,
    Select,
    children,
    walk,
)
from ansorpy.ir.tensor import ComputeOp

__all__ = ["branch_axes", "chosen_by_remainder", "formulas", "periods"]


def branch_axes(op: ComputeOp) -> frozenset[str]:
    """Axes whose equality with a constant selects between values.

    In ``select(u.equal(0), a, select(u.equal(1), b, c))``, this is ``u``.
    """
    found: set[str] = set()
    for expr in walk(op.body):
        if isinstance(expr, Select):
            for cond in _comparisons(expr.cond):
                if _is_equality(cond) and isinstance(cond.a, Axis):
                    found.add(cond.a.name)
    return frozenset(found)


def periods(op: ComputeOp) -> dict[str, int]:
    """Axes that the body divides by a constant: axis -> the ``m`` of ``axis // m, axis % m``.

    For an axis divided by several constants, this is the largest if it is a multiple of the others;
    otherwise the axis is left out.
    """
    found: dict[str, set[int]] = {}
    for expr in walk(op.body):
        if (
            isinstance(expr, Binary)
            and expr.op in (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD)
            and isinstance(expr.a, Axis)
            and isinstance(expr.b, Const)
        ):
            found.setdefault(expr.a.name, set()).add(int(expr.b.value))
    return {
        name: max(numbers)
        for name, numbers in found.items()
        if all(max(numbers) % number == 0 for number in numbers)
    }


def chosen_by_remainder(op: ComputeOp) -> frozenset[str]:
    """Axes whose remainder selects between values: ``(w % 4).equal(0)``."""
    found: set[str] = set()
    for expr in walk(op.body):
        if isinstance(expr, Select):
            for cond in _comparisons(expr.cond):
                if _is_equality(cond):
                    found |= {
                        axis.name
                        for e in walk(cond.a)
                        if isinstance(e, Binary) and e.op is BinaryOp.FLOORMOD
                        for axis in axes_in(e.a)
                    }
    return frozenset(found)


def formulas(op: ComputeOp) -> int:
    """The number of formulas that the body selects among, by axes and by remainders of axes."""
    extents = {axis.name: axis.extent for axis in op.axes}
    by_axis = (extents[name] for name in branch_axes(op) if name in extents)
    parted = periods(op)
    by_remainder = (parted[name] for name in chosen_by_remainder(op) if name in parted)
    return prod((*by_axis, *by_remainder))


def _comparisons(cond: Expr) -> Iterator[Compare]:
    if isinstance(cond, Compare):
        yield cond
    elif isinstance(cond, Binary):
        for side in children(cond):
            yield from _comparisons(side)


def _is_equality(cond: Compare) -> bool:
    return cond.op is CompareOp.EQ and isinstance(cond.b, Const)
