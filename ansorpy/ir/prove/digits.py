"""Split loop variables into digits, so that their quotients and remainders become sums.

The variable of a fused loop is used as ``v // 6``, ``v // 2 % 3`` and ``v % 2``.  isl introduces a
variable for each of these and must find out how they are related.  In terms of digits with
``v = 6 * a + 2 * b + c``, they are just ``a``, ``b`` and ``c``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ansorpy.ir.expr import Axis, Binary, BinaryOp, Const, Expr, Var, as_expr, walk
from ansorpy.ir.extents import Extent
from ansorpy.ir.rewrite.rewriter import Rewriter

__all__ = ["Digits"]


class _Slice(NamedTuple):
    """``var // low``, modulo ``high // low`` unless that is 0."""

    var: Var
    low: int
    high: int


class Digits(Rewriter):
    """Rewrites expressions in terms of digits.

    Args:
        extents: The loop variables.
        roots: All expressions that will be rewritten.

    Attributes:
        extents: Variables and digits, in the order of the loops.
        conditions: Conditions that hold for all digits that occur.
        values: The expression in digits of each variable that was split.
    """

    def __init__(self, extents: Mapping[Var, Extent], roots: Iterable[Expr]):
        super().__init__()
        self.extents: dict[Var, Extent] = {}
        self.conditions: list[Expr] = []
        self.values: dict[Var, Expr] = {}
        self._digits: dict[Var, Sequence[tuple[int, Var]]] = {}
        divisors = _divisors(roots)
        for var, extent in extents.items():
            if isinstance(extent, int):
                chain = _chain(divisors.get(var, set()), extent)
                if chain is not None:
                    self._split(var, extent, chain)
                    continue
            self.extents[var] = extent

    def expr(self, e: Expr) -> Expr:
        """*e* in terms of digits."""
        part = _slice(e)
        if part is None or part.var not in self._digits:
            return super().expr(e)
        return self._sum(part)

    def _split(self, var: Var, extent: int, chain: Sequence[int]) -> None:
        """Replace *var* by digits with the weights *chain*, which starts with 1."""
        digits = [(weight, Var(f"{var.name}.{weight}")) for weight in chain]
        ends = (*chain[1:], -(-extent // chain[-1]) * chain[-1])
        for (weight, digit), end in reversed(list(zip(digits, ends, strict=True))):
            self.extents[digit] = end // weight
        self._digits[var] = digits
        self.values[var] = self._sum(_Slice(var, 1, 0))
        if ends[-1] > extent:
            self.conditions.append(self.values[var] < as_expr(extent))

    def _sum(self, part: _Slice) -> Expr:
        total: Expr = as_expr(0)
        for weight, digit in self._digits[part.var]:
            if part.low <= weight and (not part.high or weight < part.high):
                total = total + digit * (weight // part.low)
        return total


def _divisors(roots: Iterable[Expr]) -> dict[Var, set[int]]:
    """The weights at which the digits of each variable are cut."""
    found: dict[Var, set[int]] = {}
    for root in roots:
        for e in walk(root):
            part = _slice(e)
            if part is not None:
                found.setdefault(part.var, set()).update((part.low, part.high))
    return found


def _chain(divisors: set[int], extent: int) -> list[int] | None:
    """1 and the divisors below *extent*, in order; None without any or if they form no chain."""
    chain = [1, *sorted(n for n in divisors if 1 < n < extent)]
    divides = all(b % a == 0 for a, b in zip(chain, chain[1:], strict=False))
    return chain if divides and len(chain) > 1 else None


def _slice(e: Expr) -> _Slice | None:
    """*e* as some digits of a variable; None if it is not of this form."""
    kind = type(e)
    if kind is Var or kind is Axis:
        return _Slice(e, 1, 0)  # type: ignore[arg-type]
    if not isinstance(e, Binary) or not isinstance(e.b, Const) or e.b.value <= 0:
        return None
    if e.op not in (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD):
        return None
    inner = _slice(e.a)
    if inner is None:
        return None
    cut = inner.low * int(e.b.value)
    if inner.high and inner.high % cut:
        return None
    if e.op is BinaryOp.FLOORDIV:
        return inner._replace(low=cut)
    return inner._replace(high=cut)
