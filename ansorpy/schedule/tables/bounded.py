"""Interval arithmetic on sizes: bounds of an operation's result, for many boxes at once.

Paper: R. E. Moore, "Interval Analysis", 1966.  Bounds are floating-point numbers, exact below 2**53
and infinite where a divisor may be 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ansorpy.ir.symbols import SizeOp

__all__ = ["Bounded", "bounded"]

Bounded: TypeAlias = tuple[Any, Any]
"""The least and the greatest value: numbers, or arrays with one number for each box."""


def bounded(op: SizeOp, a: Bounded, b: Bounded) -> Bounded:
    """Bounds of ``x op y`` for all *x* within *a* and *y* within *b*.

    Infinity times 0 is left out of the bounds of products; numpy may warn of it.
    """
    return _BOUNDS[op](a, b)


def _product(a: Bounded, b: Bounded) -> Bounded:
    ends = [x * y for x in a for y in b]
    low, high = ends[0], ends[0]
    for end in ends[1:]:
        low, high = np.fmin(low, end), np.fmax(high, end)
    return low, high


def _quotient(a: Bounded, b: Bounded) -> Bounded:
    positive = b[0] > 0
    divisor = np.where(positive, b[0], 1.0), np.where(positive, b[1], 1.0)
    ends = [np.floor(x / y) for x in a for y in divisor]
    low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
    return np.where(positive, low, -np.inf), np.where(positive, high, np.inf)


def _gcd(a: Bounded, b: Bounded) -> Bounded:
    """Operands are not negative; a divisor of 0 is any number."""
    positive = np.minimum(a[0], b[0]) > 0
    low = np.where(np.maximum(a[0], b[0]) > 0, 1.0, 0.0)
    high = np.where(positive, np.minimum(a[1], b[1]), np.maximum(a[1], b[1]))
    known = (a[0] == a[1]) & (b[0] == b[1]) & (np.maximum(a[1], b[1]) < 2.0**62)
    whole = [np.where(known, x, 0).astype(np.int64) for x in (a[0], b[0])]
    exact = np.gcd(*whole) * 1.0
    return np.where(known, exact, low), np.where(known, exact, high)


_BOUNDS: Mapping[SizeOp, Callable[[Bounded, Bounded], Bounded]] = {
    SizeOp.ADD: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    SizeOp.SUB: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    SizeOp.MUL: _product,
    SizeOp.FLOORDIV: _quotient,
    SizeOp.MIN: lambda a, b: (np.minimum(a[0], b[0]), np.minimum(a[1], b[1])),
    SizeOp.MAX: lambda a, b: (np.maximum(a[0], b[0]), np.maximum(a[1], b[1])),
    SizeOp.GCD: _gcd,
    SizeOp.ABOVE: lambda a, b: ((a[0] > b[1]) * 1.0, (a[1] > b[0]) * 1.0),
}
