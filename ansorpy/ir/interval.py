"""Bounds of integer expressions, and proofs of comparisons from them.

An int64 expression about which nothing is known lies in ``[INT64_MIN, INT64_MAX]``; arithmetic is
assumed not to overflow, so bounds are clipped to that range.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd

from ansorpy.ir.affine import Linear, linear
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Axis,
    Binary,
    BinaryOp,
    Call,
    Cast,
    Compare,
    CompareOp,
    Const,
    Expr,
    Function,
    Select,
    Var,
)

__all__ = ["INT64_MAX", "INT64_MIN", "Ranges", "bounds", "can_prove", "linear_bounds"]

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
Ranges = Mapping[Var, tuple[int, int]]
Interval = tuple[int, int]


def bounds(expr: Expr, ranges: Ranges) -> Interval:
    """Inclusive (lowest, highest) value of an integer or boolean *expr* over *ranges*.

    An axis that *ranges* does not name runs over its extent.

    >>> i, j = Var("i"), Var("j")
    >>> bounds(i * 4 + j - 1, {i: (0, 7), j: (0, 3)})
    (-1, 30)
    """
    kind = type(expr)
    if kind is Var or kind is Axis:
        return _variable(expr, ranges)  # type: ignore[arg-type]
    if kind is Const:
        return int(expr.value), int(expr.value)  # type: ignore[attr-defined]
    if expr.dtype is DType.INT64:
        return linear_bounds(linear(expr), ranges)
    return _atom(expr, ranges)


def linear_bounds(form: Linear, ranges: Ranges) -> Interval:
    """Inclusive bounds of an affine form."""
    low = high = form.const
    for atom, c in form.terms.items():
        lo, hi = _atom(atom, ranges)
        low += c * (lo if c > 0 else hi)
        high += c * (hi if c > 0 else lo)
    return max(low, INT64_MIN), min(high, INT64_MAX)


def can_prove(cond: Expr, ranges: Ranges) -> bool | None:
    """True or False when *cond* has that value everywhere in *ranges*, None when unknown.

    >>> i = Var("i")
    >>> can_prove(i < 8, {i: (0, 7)}), can_prove(i < 7, {i: (0, 7)}), can_prove(i < 0, {i: (0, 7)})
    (True, None, False)
    """
    match cond:
        case Const(value, _):
            return bool(value)
        case Compare(op, a, b) if a.dtype is DType.INT64:
            return _comparison(op, linear(a - b), ranges)
        case Call(Function.NOT, (x,)):
            known = can_prove(x, ranges)
            return None if known is None else not known
        case Binary(BinaryOp.AND, a, b):
            return _both(can_prove(a, ranges), can_prove(b, ranges), decisive=False)
        case Binary(BinaryOp.OR, a, b):
            return _both(can_prove(a, ranges), can_prove(b, ranges), decisive=True)
        case _:
            return None


def _both(a: bool | None, b: bool | None, *, decisive: bool) -> bool | None:
    if a is decisive or b is decisive:
        return decisive
    return None if a is None or b is None else not decisive


def _comparison(op: CompareOp, difference: Linear, ranges: Ranges) -> bool | None:
    """Truth of ``difference op 0``."""
    low, high = linear_bounds(difference, ranges)
    match op:
        case CompareOp.LT:
            return _below(low, high, 0)
        case CompareOp.LE:
            return _below(low, high, 1)
        case CompareOp.GE:
            return _negated(_below(low, high, 0))
        case CompareOp.GT:
            return _negated(_below(low, high, 1))
        case CompareOp.EQ:
            return _is_zero(difference, low, high)
        case CompareOp.NE:
            return _negated(_is_zero(difference, low, high))


def _below(low: int, high: int, limit: int) -> bool | None:
    """Truth of ``x < limit`` for x in [low, high]."""
    return True if high < limit else False if low >= limit else None


def _negated(known: bool | None) -> bool | None:
    return None if known is None else not known


def _is_zero(difference: Linear, low: int, high: int) -> bool | None:
    if low == high == 0:
        return True
    step = gcd(*difference.terms.values())
    if low > 0 or high < 0 or (step > 1 and difference.const % step):
        return False
    return None


def _variable(v: Var, ranges: Ranges) -> Interval:
    known = ranges.get(v)
    if known is not None:
        return known
    return (0, v.extent - 1) if isinstance(v, Axis) else (INT64_MIN, INT64_MAX)


def _atom(e: Expr, ranges: Ranges) -> Interval:
    match e:
        case Var():
            return _variable(e, ranges)
        case Const(value, _):
            return int(value), int(value)
        case Binary(op, a, b) if op in _BINARY and e.dtype is DType.INT64:
            return _BINARY[op](bounds(a, ranges), bounds(b, ranges))
        case Select(cond, then, other) if not e.dtype.is_float:
            return _choice(can_prove(cond, ranges), bounds(then, ranges), bounds(other, ranges))
        case Call(Function.ABS, (x,)) if e.dtype is DType.INT64:
            low, high = bounds(x, ranges)
            least = 0 if low <= 0 <= high else min(abs(low), abs(high))
            return least, min(max(abs(low), abs(high)), INT64_MAX)
        case Cast(_, x) if not x.dtype.is_float and not e.dtype.is_float:
            inner, outer = bounds(x, ranges), _type_range(e.dtype)
            return inner if outer[0] <= inner[0] and inner[1] <= outer[1] else outer
        case _:
            return _type_range(e.dtype)


def _type_range(dtype: DType) -> Interval:
    if dtype is DType.BOOL:
        return 0, 1
    if not dtype.is_int:
        return INT64_MIN, INT64_MAX
    if dtype.is_signed:
        return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1
    return 0, (1 << dtype.bits) - 1


def _choice(known: bool | None, then: Interval, other: Interval) -> Interval:
    if known is not None:
        return then if known else other
    return min(then[0], other[0]), max(then[1], other[1])


def _clip(values: list[int]) -> Interval:
    return max(min(values), INT64_MIN), min(max(values), INT64_MAX)


def _mul(a: Interval, b: Interval) -> Interval:
    return _clip([x * y for x in a for y in b])


def _floordiv(a: Interval, b: Interval) -> Interval:
    if b[0] <= 0 <= b[1]:
        return INT64_MIN, INT64_MAX
    return _clip([x // y for x in a for y in b])


def _floormod(a: Interval, b: Interval) -> Interval:
    if b[0] <= 0 <= b[1]:
        return INT64_MIN, INT64_MAX
    if b[0] == b[1] and a[0] // b[0] == a[1] // b[0]:
        return _clip([a[0] % b[0], a[1] % b[0]])
    if b[1] < 0:
        return b[0] + 1, 0
    return 0, min(b[1] - 1, a[1]) if a[0] >= 0 else b[1] - 1


_BINARY: dict[BinaryOp, Callable[[Interval, Interval], Interval]] = {
    BinaryOp.MUL: _mul,
    BinaryOp.FLOORDIV: _floordiv,
    BinaryOp.FLOORMOD: _floormod,
    BinaryOp.MIN: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    BinaryOp.MAX: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}
