"""A scalar evaluator of integer expressions, and random ones, for the property tests."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from hypothesis import strategies as st

from ansorpy.ir.builders import maximum, minimum, select
from ansorpy.ir.expr import (
    Binary,
    BinaryOp,
    Call,
    Compare,
    CompareOp,
    Const,
    Expr,
    Function,
    Select,
    Var,
    const,
)

BINARY: dict[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.ADD: operator.add, BinaryOp.SUB: operator.sub, BinaryOp.MUL: operator.mul,
    BinaryOp.FLOORDIV: operator.floordiv, BinaryOp.FLOORMOD: operator.mod, BinaryOp.MIN: min,
    BinaryOp.MAX: max, BinaryOp.AND: operator.and_, BinaryOp.OR: operator.or_,
}  # fmt: skip
COMPARE: dict[CompareOp, Callable[[int, int], bool]] = {
    CompareOp.LT: operator.lt, CompareOp.LE: operator.le, CompareOp.GT: operator.gt,
    CompareOp.GE: operator.ge, CompareOp.EQ: operator.eq, CompareOp.NE: operator.ne,
}  # fmt: skip


def value(e: Expr, env: Mapping[Expr, int]) -> int:
    if e in env:
        return env[e]
    match e:
        case Const(v, _):
            return int(v)
        case Binary(op, a, b):
            return int(BINARY[op](value(a, env), value(b, env)))
        case Compare(cmp, a, b):
            return int(COMPARE[cmp](value(a, env), value(b, env)))
        case Call(Function.NEG, (x,)):
            return -value(x, env)
        case Call(Function.NOT, (x,)):
            return 1 - value(x, env)
        case Call(Function.ABS, (x,)):
            return abs(value(x, env))
        case Select(cond, then, other):
            return value(then if value(cond, env) else other, env)
        case _:
            raise TypeError(type(e).__name__)


VARS = tuple(Var(name) for name in "ijkl")
CONSTANTS = st.integers(-9, 9).map(const)
DIVISORS = st.sampled_from([1, 2, 3, 4, 6, 7, 8, 16, -3]).map(const)


def _grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    pair = st.tuples(inner, inner)
    conditions = st.tuples(pair, st.sampled_from(list(CompareOp))).map(
        lambda t: Compare(t[1], t[0][0], t[0][1])
    )
    choices = st.tuples(conditions, conditions, inner, inner, st.integers(0, 3))
    return st.one_of(
        pair.map(lambda t: t[0] + t[1]),
        pair.map(lambda t: t[0] - t[1]),
        st.tuples(inner, st.one_of(CONSTANTS, inner)).map(lambda t: t[0] * t[1]),
        st.tuples(inner, DIVISORS).map(lambda t: t[0] // t[1]),
        st.tuples(inner, DIVISORS).map(lambda t: t[0] % t[1]),
        pair.map(lambda t: minimum(t[0], t[1])),
        pair.map(lambda t: maximum(t[0], t[1])),
        inner.map(lambda e: -e),
        choices.map(_choose),
    )


def _choose(t: tuple[Expr, Expr, Expr, Expr, int]) -> Expr:
    a, b, then, other, kind = t
    cond = [a, a & b, a | b, Call(Function.NOT, (a,))][kind]
    return select(cond, then, other)


INTEGERS = st.recursive(st.one_of(st.sampled_from(VARS), CONSTANTS), _grow, max_leaves=12)


@st.composite
def ranges(draw: st.DrawFn) -> dict[Var, tuple[int, int]]:
    found = {}
    for v in VARS:
        low = draw(st.integers(-6, 6))
        found[v] = (low, low + draw(st.integers(0, 12)))
    return found


@st.composite
def points(draw: st.DrawFn, inside: Mapping[Var, tuple[int, int]]) -> dict[Expr, int]:
    return {v: draw(st.integers(*inside[v])) for v in VARS}
