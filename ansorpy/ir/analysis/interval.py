"""Bounds of integer expressions, and proofs of comparisons from them.

An int64 expression without known bounds lies in ``[INT64_MIN, INT64_MAX]``.  Arithmetic on
variables alone, those of lets included, is assumed not to overflow, so its bounds are clipped to
that range.  What reads data, and narrower integers, may wrap around to any value.  Quotients and
remainders by 0 are 0.

Where extents are expressions of dimensions, :func:`extents_of` gives bounds that are such
expressions too; they prove comparisons that numbers leave open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import gcd, prod

from ansorpy.ir.analysis.affine import Linear, common_quotient, difference, linear
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
    Load,
    Reduce,
    ReduceKind,
    Select,
    SizeVar,
    Var,
    has_load,
    walk,
)
from ansorpy.ir.extents import Extent, Symbolic, dim_extent, extreme, least, most
from ansorpy.ir.symbols import SizeOp

__all__ = [
    "INT64_MAX", "INT64_MIN", "Bounder", "Interval", "Ranges", "bounds", "can_prove", "decided",
    "extents_of",
]  # fmt: skip

INT64_MIN, INT64_MAX = DType.INT64.limits
Interval = tuple[int, int]
Extents = tuple[Extent, Extent]
Ranges = Mapping[Var, Extents]
"""The lowest and the highest value of variables."""


def bounds(expr: Expr, ranges: Ranges) -> Interval:
    """The inclusive (lowest, highest) value of an integer or boolean *expr* over *ranges*.

    An axis that is not in *ranges* runs over its extent.

    >>> i, j = Var("i"), Var("j")
    >>> bounds(i * 4 + j - 1, {i: (0, 7), j: (0, 3)})
    (-1, 30)
    """
    return Bounder(ranges).bounds(expr)


def extents_of(expr: Expr, ranges: Ranges) -> Extents:
    """As :func:`bounds`, but expressions of dimensions where *expr* or *ranges* depend on them.

    >>> from ansorpy.ir.expr import as_expr
    >>> from ansorpy.ir.extents import dim
    >>> n, i = dim("n", 16, 512), Var("i")
    >>> start = Binary(BinaryOp.MIN, i * 16, as_expr(n - 16))
    >>> extents_of(start, {i: (0, (n + 15) // 16 - 1)})
    (0, n - 16)
    """
    return Bounder(ranges).extents(expr)


def can_prove(cond: Expr, ranges: Ranges) -> bool | None:
    """True or False if *cond* has that value everywhere in *ranges*, None if unknown.

    >>> i = Var("i")
    >>> can_prove(i < 8, {i: (0, 7)}), can_prove(i < 7, {i: (0, 7)}), can_prove(i < 0, {i: (0, 7)})
    (True, None, False)
    """
    return Bounder(ranges).truth(cond)


def decided(op: CompareOp, low: int, high: int) -> bool | None:
    """The truth of ``x op 0`` if it is the same for all x in ``[low, high]``, else None."""
    match op:
        case CompareOp.LT:
            return True if high < 0 else False if low >= 0 else None
        case CompareOp.LE:
            return True if high <= 0 else False if low > 0 else None
        case CompareOp.EQ:
            return False if low > 0 or high < 0 else True if low == high else None
        case _:
            known = decided(op.negation, low, high)
            return None if known is None else not known


class Bounder:
    """Bounds and proofs over *ranges*; each expression is analysed once, even if it is shared.

    Args:
        loaded: Returns the interval of the values that a load reads, if the type's is too wide.
    """

    def __init__(self, ranges: Ranges, loaded: Callable[[Load], Interval] | None = None):
        self.ranges = ranges
        self.overflows = False
        """True if some arithmetic met so far may overflow its type."""
        self._loaded = loaded
        self._known: dict[Expr, Interval] = {}
        self._truths: dict[Expr, bool | None] = {}

    def bounds(self, e: Expr) -> Interval:
        """The inclusive (lowest, highest) value of an integer or boolean expression."""
        kind = type(e)
        if kind is Var or kind is Axis:
            return self._variable(e)  # type: ignore[arg-type]
        if kind is Const:
            return int(e.value), int(e.value)  # type: ignore[attr-defined]
        known = self._known.get(e)
        if known is None:
            is_index = e.dtype is DType.INT64
            known = self.linear_bounds(linear(e)) if is_index else self._atom(e)
            self._known[e] = known
        return known

    def linear_bounds(self, form: Linear) -> Interval:
        """Inclusive bounds of an affine form, computed in int64."""
        return self._fitted(self._ends(form), DType.INT64, form.terms)

    def wraps(self, form: Linear) -> bool:
        """True if *form* reads data and may wrap around, so that it is no sum of integers."""
        low, high = self._ends(form)
        return not INT64_MIN <= low <= high <= INT64_MAX and any(map(has_load, form.terms))

    def _ends(self, form: Linear) -> Interval:
        """Inclusive bounds of an affine form over the integers."""
        low = high = form.const
        for atom, c in form.terms.items():
            lo, hi = self._atom_bounds(atom)
            low += c * (lo if c > 0 else hi)
            high += c * (hi if c > 0 else lo)
        return low, high

    def truth(self, cond: Expr) -> bool | None:
        """True or False if *cond* has that value everywhere, None if unknown."""
        if type(cond) is Const:
            return bool(cond.value)
        if cond not in self._truths:
            self._truths[cond] = self._proof(cond)
        return self._truths[cond]

    def _proof(self, cond: Expr) -> bool | None:
        match cond:
            case Compare(op, a, b) if a.dtype is DType.INT64:
                return self._comparison(op, linear(a), linear(b))
            case Call(Function.NOT, (x,)):
                known = self.truth(x)
                return None if known is None else not known
            case Binary(BinaryOp.AND, a, b):
                return _both(self.truth(a), self.truth(b), decisive=False)
            case Binary(BinaryOp.OR, a, b):
                return _both(self.truth(a), self.truth(b), decisive=True)
            case _:
                return None

    def _comparison(self, op: CompareOp, a: Linear, b: Linear) -> bool | None:
        """The truth of ``a op b``."""
        gap = difference(a, b)
        known = decided(op, *self._ends(gap))
        if known is None and self._is_sized(gap.terms):
            low, high = self._linear_extents(gap)
            known = decided(op, least(low), most(high))
        if known is None and op in (CompareOp.EQ, CompareOp.NE):
            step = gcd(*gap.terms.values())
            if step > 1 and gap.const % step:
                known = op is CompareOp.NE
        is_same = not gap.terms and not gap.const
        return known if is_same or known is None or not (self.wraps(a) or self.wraps(b)) else None

    def _variable(self, v: Var) -> Interval:
        low, high = self._range(v)
        return least(low), most(high)

    # Bounds that depend on dimensions

    def extents(self, e: Expr) -> Extents:
        """The lowest and the highest value of an integer expression, by the sizes of dimensions."""
        is_sized = e.dtype is DType.INT64 and self._is_sized([e])
        return self._linear_extents(linear(e)) if is_sized else self.bounds(e)

    def _is_sized(self, parts: Iterable[Expr]) -> bool:
        """True if the bounds of *parts* depend on dimensions."""
        return any(
            isinstance(e, SizeVar) or any(isinstance(x, Symbolic) for x in self._range(e))
            for part in parts
            for e in walk(part)
            if isinstance(e, Var)
        )

    def _range(self, v: Var) -> Extents:
        known = self.ranges.get(v)
        if known is not None:
            return known
        if isinstance(v, Axis):
            return 0, v.extent - 1
        return (dim_extent(v.dim),) * 2 if isinstance(v, SizeVar) else (INT64_MIN, INT64_MAX)

    def _linear_extents(self, form: Linear) -> Extents:
        low: Extent = form.const
        high: Extent = form.const
        for atom, c in form.terms.items():
            ends = self._atom_extents(atom)
            low, high = low + c * ends[c < 0], high + c * ends[c > 0]
        return low, high

    def _atom_extents(self, e: Expr) -> Extents:
        match e:
            case Var():
                return self._range(e)
            case Binary(BinaryOp.MIN | BinaryOp.MAX as op, a, b):
                pairs = zip(self.extents(a), self.extents(b), strict=True)
                kind = SizeOp.MIN if op is BinaryOp.MIN else SizeOp.MAX
                low, high = (extreme(kind, x, y) for x, y in pairs)
                return low, high
            case Binary(BinaryOp.FLOORDIV, a, b):
                (low, high), (less, more) = self.extents(a), self.extents(b)
                if least(low) >= 0 and least(less) > 0:
                    return low // more, high // less
                if least(low) >= 0 and least(less) == 0:
                    return 0, high
            case Binary(BinaryOp.FLOORMOD, a, b):
                low, high = self.extents(b)
                if least(low) > 0:
                    return 0, high - 1
            case Binary(BinaryOp.MUL, a, b):
                (low, high), (less, more) = self.extents(a), self.extents(b)
                if least(low) >= 0 and least(less) >= 0:
                    return low * less, high * more
        return self._atom_bounds(e)

    def _atom_bounds(self, e: Expr) -> Interval:
        """Bounds of a variable, or of an expression that is not a sum."""
        if isinstance(e, Var):
            return self._variable(e)
        known = self._known.get(e)
        if known is None:
            known = self._known[e] = self._atom(e)
        return known

    def _atom(self, e: Expr) -> Interval:
        match e:
            case Const(value, _):
                return int(value), int(value)
            case Binary(op, a, b) if op in _BINARY and not e.dtype.is_float:
                return self._fitted(_BINARY[op](self.bounds(a), self.bounds(b)), e.dtype, (e,))
            case Select(cond, then, other) if not e.dtype.is_float:
                return _choice(self.truth(cond), self.bounds(then), self.bounds(other))
            case Call(Function.ABS | Function.NEG as fn, (x,)) if e.dtype.is_int:
                return self._fitted(_UNARY[fn](*self.bounds(x)), e.dtype, (e,))
            case Cast(_, x) if not x.dtype.is_float and not e.dtype.is_float:
                inner, outer = self.bounds(x), e.dtype.limits
                return inner if outer[0] <= inner[0] and inner[1] <= outer[1] else outer
            case Load() if self._loaded is not None and not e.dtype.is_float:
                return self._loaded(e)
            case Reduce() if not e.dtype.is_float:
                return self._fitted(self._reduced(e), e.dtype, (e,))
            case _:
                return (INT64_MIN, INT64_MAX) if e.dtype.is_float else e.dtype.limits

    def _reduced(self, e: Reduce) -> Interval | None:
        low, high = self.bounds(e.source)
        if any(least(axis.extent) < 1 for axis in e.axes):  # there may be nothing to combine
            identity = int(e.kind.identity(e.dtype))
            low, high = min(low, identity), max(high, identity)
        terms = prod(most(axis.extent) for axis in e.axes)
        if terms == 1 or e.kind in (ReduceKind.MAX, ReduceKind.MIN):
            return low, high
        if e.kind is ReduceKind.SUM:
            return min(low, low * terms), max(high, high * terms)
        largest = max(abs(low), abs(high)) ** min(terms, 64)
        return -largest, largest

    def _fitted(self, found: Interval | None, dtype: DType, parts: Iterable[Expr]) -> Interval:
        """*found*, bounds of arithmetic on *parts*, limited to the range of *dtype*; None means
        that whole range."""
        lowest, highest = dtype.limits
        if found is None:
            return lowest, highest
        low, high = found
        if lowest <= low and high <= highest:
            return found
        self.overflows = True
        if dtype is not DType.INT64 or any(map(has_load, parts)):
            return lowest, highest
        return max(low, lowest), min(high, highest)


def _both(a: bool | None, b: bool | None, *, decisive: bool) -> bool | None:
    if a is decisive or b is decisive:
        return decisive
    return None if a is None or b is None else not decisive


def _choice(known: bool | None, then: Interval, other: Interval) -> Interval:
    if known is not None:
        return then if known else other
    return min(then[0], other[0]), max(then[1], other[1])


def _absolute(low: int, high: int) -> Interval:
    least = 0 if low <= 0 <= high else min(abs(low), abs(high))
    return least, max(abs(low), abs(high))


def _mul(a: Interval, b: Interval) -> Interval:
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def _floordiv(a: Interval, b: Interval) -> Interval | None:
    if b[0] <= 0 <= b[1]:
        return (0, a[1]) if a[0] >= 0 == b[0] else None
    ends = [x // y for x in a for y in b]
    return min(ends), max(ends)


def _floormod(a: Interval, b: Interval) -> Interval | None:
    if b[0] <= 0 <= b[1]:
        return (0, max(b[1] - 1, 0)) if b[0] == 0 else None
    if b[0] == b[1] and common_quotient(*a, b[0]) is not None:
        return a[0] % b[0], a[1] % b[0]
    if b[1] < 0:
        return b[0] + 1, 0
    return 0, min(b[1] - 1, a[1]) if a[0] >= 0 else b[1] - 1


def _bit_and(a: Interval, b: Interval) -> Interval | None:
    """Bounds of the common bits: no more than an operand that is not negative."""
    ends = [high for low, high in (a, b) if low >= 0]
    return (0, min(ends)) if ends else None


def _shifted_right(a: Interval, b: Interval) -> Interval | None:
    """Bounds after a shift by a known distance."""
    distance = b[0]
    return (a[0] >> distance, a[1] >> distance) if b[0] == b[1] and distance >= 0 else None


_UNARY: dict[Function, Callable[[int, int], Interval]] = {
    Function.ABS: _absolute,
    Function.NEG: lambda low, high: (-high, -low),
}
_BINARY: dict[BinaryOp, Callable[[Interval, Interval], Interval | None]] = {
    BinaryOp.ADD: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    BinaryOp.SUB: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    BinaryOp.MUL: _mul,
    BinaryOp.FLOORDIV: _floordiv,
    BinaryOp.FLOORMOD: _floormod,
    BinaryOp.BIT_AND: _bit_and,
    BinaryOp.SHR: _shifted_right,
    BinaryOp.MIN: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    BinaryOp.MAX: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}
