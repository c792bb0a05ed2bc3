"""Simplification of expressions and statements under known ranges of their variables.

Sums are brought to affine form, quotients and remainders are divided out, comparisons are decided
if bounds allow it, and the rows of :mod:`ansorpy.ir.rewrite.identities` handle the rest.  Only
int64 and boolean expressions, and selects of any type, change.  Arithmetic on variables alone is
assumed not to overflow; what reads data keeps its value where it wraps around.
"""

from __future__ import annotations

from math import gcd

from ansorpy.ir.analysis.affine import Linear, common_quotient, divided, linear, multiples
from ansorpy.ir.analysis.interval import Bounder, Ranges
from ansorpy.ir.analysis.structural_equality import same_structure
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Binary,
    BinaryOp,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Function,
    Var,
    as_expr,
    const,
)
from ansorpy.ir.extents import Extent
from ansorpy.ir.loops import For, If, Let, Seq, Stmt
from ansorpy.ir.rewrite.identities import apply_rows
from ansorpy.ir.rewrite.rewriter import Rewriter, map_children

__all__ = ["Simplifier", "simplify", "simplify_stmt"]

_SUMS = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL)


def simplify(expr: Expr, ranges: Ranges | None = None) -> Expr:
    """An equal expression that is no larger; *expr* itself if there is nothing to simplify.

    *ranges* gives inclusive bounds of variables; axes not named there run over their extents.

    >>> i, j = Var("i"), Var("j")
    >>> simplify((i * 4 + j) // 4, {j: (0, 3)}) is i
    True
    >>> kept = i // 4
    >>> simplify(kept) is kept
    True
    """
    return Simplifier(ranges or {}).expr(expr)


def simplify_stmt(stmt: Stmt, ranges: Ranges | None = None) -> Stmt:
    """*stmt* with its expressions simplified under the ranges that its loops and lets imply.

    An ``If`` whose condition is decided is replaced by the branch taken.
    """
    return Simplifier(ranges or {}).stmt(stmt)


class Simplifier(Rewriter):
    """Simplifies under *ranges*; an expression that is shared, or met again, is simplified once."""

    def __init__(self, ranges: Ranges):
        super().__init__()
        self.ranges = ranges
        self.known = Bounder(ranges)

    def expr(self, e: Expr) -> Expr:
        done = self._memo.get(e)
        if done is None:
            done = self._sum(e) if _is_sum(e) else self.leave(map_children(e, self.expr))
            self._memo[e] = done
        return done

    def leave(self, e: Expr) -> Expr:
        """Apply the first rewrite that matches *e*, whose operands are simple; simplify again."""
        new = self._ranged(e)
        if new is None:
            new = apply_rows(e)
        return e if new is None else self.expr(new)

    def _ranged(self, e: Expr) -> Expr | None:
        """A rewrite of *e* that the ranges of its operands allow; None if there is none."""
        match e:
            case Var():
                known = self.ranges.get(e)
                return as_expr(known[0]) if known is not None and known[0] == known[1] else None
            case Compare():
                truth = self.known.truth(e)
                return None if truth is None else const(truth, DType.BOOL)
            case Binary(BinaryOp.MIN | BinaryOp.MAX, _, _) if e.dtype is DType.INT64:
                return self._extreme(e)
            case Binary(BinaryOp.FLOORDIV, a, Const(c, _)) if c > 0 and e.dtype is DType.INT64:
                return self._quotient(linear(a), int(c))
            case Binary(BinaryOp.FLOORMOD, a, Const(c, _)) if c > 0 and e.dtype is DType.INT64:
                return self._remainder(linear(a), int(c))
            case Cast(to, Const(value, kind)) if to is DType.INT64 and not kind.is_float:
                return const(DType.INT64.wrapped(int(value)))
            case _:
                return None

    def _sum(self, e: Expr) -> Expr:
        """The affine form of *e* over simplified atoms."""
        form = linear(e)
        simple = [(self._atom(atom), c) for atom, c in form.terms.items()]
        new: Linear = form
        if any(s is not atom for (s, _), atom in zip(simple, form.terms, strict=True)):
            total: Expr = const(form.const)
            for atom, c in simple:
                total = total + atom * c
            new = linear(total)
        new = _joined(new)
        result = new.to_expr()
        if same_structure(result, e):
            return e
        return result if new is form or not _is_sum(result) else self._sum(result)

    def _atom(self, atom: Expr) -> Expr:
        """A sum's atom, simplified; one may be a product of two non-constants, itself a "sum"."""
        return map_children(atom, self.expr) if _is_sum(atom) else self.expr(atom)

    def _extreme(self, e: Binary) -> Expr | None:
        smaller = self.known.truth(e.a <= e.b)
        if smaller is None:
            if not self.known.truth(e.a >= e.b):
                return None
            smaller = False
        return e.a if smaller is (e.op is BinaryOp.MIN) else e.b

    def _quotient(self, form: Linear, c: int) -> Expr | None:
        """``(c*u + r) // c = u + r // c``, where ``r // c`` vanishes if r lies in ``[0, c)``."""
        outer, rest = multiples(form, c)
        if self.known.wraps(form) or self.known.wraps(rest):
            return None
        exact = divided(form, c, self.known.linear_bounds)
        if exact is not None:
            return exact[0].to_expr()
        if outer.terms or outer.const:
            return outer.to_expr() + rest.to_expr() // c
        found = self._step(rest, c)
        return None if found is None else found[1].to_expr() // (c // found[0])

    def _remainder(self, form: Linear, c: int) -> Expr | None:
        """Drop multiples of c from ``form % c``; if the result lies in ``[0, c)``, drop ``% c``."""
        rest_terms = {a: k if abs(k) < c else k % c for a, k in form.terms.items() if k % c}
        rest, signed = Linear(rest_terms, form.const % c), Linear(rest_terms, form.const)
        if self.known.wraps(form) or self.known.wraps(rest):
            return None
        for candidate in (signed, rest):
            extra = common_quotient(*self.known.linear_bounds(candidate), c)
            if extra is not None:
                return Linear(candidate.terms, candidate.const - extra * c).to_expr()
        found = self._step(rest, c)
        if found is not None:
            step, multiple, below = found
            return multiple.to_expr() % (c // step) * step + below.to_expr()
        return None if rest == form else rest.to_expr() % c

    def _step(self, form: Linear, c: int) -> tuple[int, Linear, Linear] | None:
        """(s, u, r) with ``form = s*u + r``, r in ``[0, s)`` and s > 1 a divisor of *c*."""
        for step in sorted({gcd(c, k) for k in form.terms.values()} - {1, c}, reverse=True):
            found = divided(form, step, self.known.linear_bounds)
            if found is not None:
                return step, *found
        return None

    def stmt(self, s: Stmt) -> Stmt:
        match s:
            case For(var, extent, _, _):
                return self._inside(s, var, (0, extent - 1))
            case Let(var, value, _):
                return self._inside(s, var, self.known.bounds(self.expr(value)))
            case If(cond, then, other):
                return self._branch(s, self.known.truth(self.expr(cond)), then, other)
            case _:
                return super().stmt(s)

    def _inside(self, s: Stmt, var: Var, values: tuple[Extent, Extent]) -> Stmt:
        inner = Simplifier({**self.ranges, var: values})
        return Rewriter.stmt(inner, s)

    def _branch(self, s: If, truth: bool | None, then: Stmt, other: Stmt | None) -> Stmt:
        if truth is None:
            return super().stmt(s)
        taken = then if truth else other
        return Seq(()) if taken is None else self.stmt(taken)


def _is_sum(e: Expr) -> bool:
    if e.dtype is not DType.INT64:
        return False
    return (isinstance(e, Binary) and e.op in _SUMS) or (
        isinstance(e, Call) and e.fn is Function.NEG
    )


def _joined(form: Linear) -> Linear:
    """*form* with ``k*c*(x // c) + k*(x % c)`` replaced by ``k*x``."""
    for atom, k in form.terms.items():
        match atom:
            case Binary(BinaryOp.FLOORMOD, x, Const(c, _)):
                partner = _quotient_of(form, x, int(c), k * int(c))
            case _:
                continue
        if partner is not None:
            total = x * k + form.const
            for other, m in form.terms.items():
                if other is not atom and other is not partner:
                    total = total + other * m
            return linear(total)
    return form


def _quotient_of(form: Linear, x: Expr, c: int, wanted: int) -> Expr | None:
    """The atom ``x // c`` of *form* if its coefficient is *wanted*."""
    for atom, k in form.terms.items():
        match atom:
            case Binary(BinaryOp.FLOORDIV, y, Const(d, _)) if d == c and k == wanted:
                if same_structure(x, y):
                    return atom
            case _:
                pass
    return None
