"""The simplifier's table: one identity per row, as pattern, replacement and condition.

In a pattern, ``x``, ``y`` and ``z`` stand for int64 expressions, ``p`` and ``q`` for booleans,
``u``, ``v`` and ``w`` for expressions of any type, ``c`` and ``d`` for int64 constants; a letter
used twice must match equal expressions.  Sums, differences and multiples need no rows, because
their affine form is canonical (:mod:`ansorpy.ir.rewrite.simplify`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from ansorpy.ir.analysis.structural_equality import same_structure
from ansorpy.ir.builders import maximum, minimum
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Call,
    Const,
    Expr,
    ExprLike,
    Function,
    Select,
    Var,
    as_expr,
    children,
    const,
    has_load,
)
from ansorpy.ir.operands import LABELS

__all__ = ["ROWS", "Row", "apply_rows"]


@dataclass(frozen=True)
class Row:
    """``left`` becomes ``right(...)`` if ``when(...)`` holds; both take the letters of ``left``."""

    left: Expr
    right: Callable[..., ExprLike]
    when: Callable[..., bool] = lambda **_: True


@dataclass(frozen=True, eq=False)
class _Letter(Expr):
    """Stands for an expression of type ``type`` in a pattern, or of any type if ``free``."""

    name: str
    type: DType
    free: bool = False

    @property
    def dtype(self) -> DType:
        return self.type


x, y, z = (_Letter(name, DType.INT64) for name in "xyz")
p, q = (_Letter(name, DType.BOOL) for name in "pq")
u, v, w = (_Letter(name, DType.INT64, free=True) for name in "uvw")
c, d = Var("c"), Var("d")
TRUE, FALSE = const(True, DType.BOOL), const(False, DType.BOOL)


def _not(a: Expr) -> Expr:
    return Call(Function.NOT, (a,))


ROWS: tuple[Row, ...] = (
    # Quotients and remainders
    Row(x // 1, lambda x: x),
    Row(x % 1, lambda x: 0),
    Row((x // c) // d, lambda x, c, d: x // (c * d),
        lambda x, c, d: c > 0 and d > 0 and DType.INT64.holds(c * d)),
    Row((x % c) % d, lambda x, c, d: x % d, lambda x, c, d: c > 0 and d > 0 and c % d == 0),
    Row((x % c) // d, lambda x, c, d: (x // d) % (c // d),
        lambda x, c, d: c > 0 and d > 0 and c % d == 0 and c > d),
    # Smallest and largest
    Row(minimum(x, x), lambda x: x),
    Row(maximum(x, x), lambda x: x),
    Row(minimum(c, d), lambda c, d: min(c, d)),
    Row(maximum(c, d), lambda c, d: max(c, d)),
    Row(minimum(c, x), lambda c, x: minimum(x, c), lambda c, x: not isinstance(x, Const)),
    Row(maximum(c, x), lambda c, x: maximum(x, c), lambda c, x: not isinstance(x, Const)),
    Row(minimum(minimum(x, c), d), lambda x, c, d: minimum(x, min(c, d))),
    Row(maximum(maximum(x, c), d), lambda x, c, d: maximum(x, max(c, d))),
    Row(minimum(minimum(x, y), y), lambda x, y: minimum(x, y)),
    Row(maximum(maximum(x, y), y), lambda x, y: maximum(x, y)),
    Row(maximum(minimum(x, y), y), lambda x, y: y),
    Row(minimum(maximum(x, y), y), lambda x, y: y),
    # Booleans
    Row(p & TRUE, lambda p: p),
    Row(TRUE & p, lambda p: p),
    Row(p & FALSE, lambda p: FALSE),
    Row(FALSE & p, lambda p: FALSE),
    Row(p & p, lambda p: p),
    Row(p | TRUE, lambda p: TRUE),
    Row(TRUE | p, lambda p: TRUE),
    Row(p | FALSE, lambda p: p),
    Row(FALSE | p, lambda p: p),
    Row(p | p, lambda p: p),
    Row(_not(_not(p)), lambda p: p),
    Row(_not(TRUE), lambda: FALSE),
    Row(_not(FALSE), lambda: TRUE),
    Row(_not(x < y), lambda x, y: x >= y),
    Row(_not(x <= y), lambda x, y: x > y),
    Row(_not(x > y), lambda x, y: x <= y),
    Row(_not(x >= y), lambda x, y: x < y),
    Row(_not(x.equal(y)), lambda x, y: x.not_equal(y)),
    Row(_not(x.not_equal(y)), lambda x, y: x.equal(y)),
    # Selections
    Row(Select(TRUE, u, v), lambda u, v: u),
    Row(Select(FALSE, u, v), lambda u, v: v),
    Row(Select(p, u, u), lambda p, u: u),
    Row(Select(_not(p), u, v), lambda p, u, v: Select(p, v, u)),
    Row(Select(p, Select(p, u, v), w), lambda p, u, v, w: Select(p, u, w)),
    Row(Select(p, Select(q, u, w), w), lambda p, q, u, w: Select(p & q, u, w),
        lambda q, **_: not has_load(q)),  # p may guard the reads of q against being out of bounds
)  # fmt: skip

Found = dict[str, Expr | int]
_Root = tuple[type[Expr], Hashable]


def apply_rows(e: Expr) -> Expr | None:
    """The replacement of the first row that matches *e*, or None."""
    for row in _BY_ROOT.get(_root(e), ()):
        found: Found = {}
        if _match(row.left, e, found) and row.when(**found):
            return as_expr(row.right(**found), e.dtype)
    return None


def _root(e: Expr) -> _Root:
    """What *e* is apart from its operands."""
    label = LABELS.get(type(e))
    return type(e), None if label is None else label(e)


def _match(left: Expr, e: Expr, found: Found) -> bool:
    """True if *e* is an instance of the pattern *left*; fills *found* with its letters."""
    if isinstance(left, _Letter):
        return _match_letter(left, e, found)
    if isinstance(left, Var):
        return _match_constant(left, e, found)
    if _root(left) != _root(e):
        return False
    return all(_match(a, b, found) for a, b in zip(children(left), children(e), strict=True))


def _match_letter(left: _Letter, e: Expr, found: Found) -> bool:
    if not left.free and e.dtype is not left.type:
        return False
    before = found.setdefault(left.name, e)
    return isinstance(before, Expr) and same_structure(before, e)


def _match_constant(left: Var, e: Expr, found: Found) -> bool:
    if not isinstance(e, Const) or e.type is not DType.INT64:
        return False
    return found.setdefault(left.name, int(e.value)) == int(e.value)


def _by_root() -> dict[_Root, tuple[Row, ...]]:
    table: dict[_Root, list[Row]] = {}
    for row in ROWS:
        table.setdefault(_root(row.left), []).append(row)
    return {root: tuple(rows) for root, rows in table.items()}


_BY_ROOT = _by_root()
