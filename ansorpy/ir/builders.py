"""Functions that build expressions: reductions, selections and elementwise mathematics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ansorpy.errors import UsageError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Axis,
    Binary,
    BinaryOp,
    Call,
    Expr,
    ExprLike,
    Function,
    Reduce,
    ReduceKind,
    Select,
    as_expr,
)
from ansorpy.ir.operators import demand_no_truth
from ansorpy.ir.tensor import ComputeOp, compute, reduce_axis

__all__ = [
    "REDUCTIONS", "abs", "all_of", "argmax", "argmin", "ceil", "cos", "erf", "exp", "floor", "log",
    "max", "maximum", "min", "minimum", "prod", "round", "rsqrt", "select", "sigmoid", "sin",
    "sqrt", "sum", "tanh", "widened",
]  # fmt: skip


def _reduce(kind: ReduceKind) -> Callable[..., Expr]:
    def build(source: ExprLike, axis: Axis | Sequence[Axis]) -> Expr:
        demand_no_truth(source)
        source = as_expr(source)
        axes = tuple(axis) if isinstance(axis, Iterable) else (axis,)
        for each in axes:
            if not isinstance(each, Axis):
                raise TypeError(f"{each!r} is not an axis; reduce_axis makes one to reduce over")
        if not kind.combiner.accepts(source.dtype):
            raise UsageError(
                f"{kind.value} of {source.dtype.value} values is not defined",
                hint="use max to test for any, min to test for all, or .astype(...) to count them",
            )
        return Reduce(kind, source, axes) if axes else source

    build.__name__ = build.__qualname__ = kind.value
    build.__doc__ = f"Reduce *source* over *axis* (one or several) by {kind.value}."
    return build


sum = _reduce(ReduceKind.SUM)
prod = _reduce(ReduceKind.PROD)
max = _reduce(ReduceKind.MAX)
min = _reduce(ReduceKind.MIN)

REDUCTIONS: Mapping[ReduceKind, Callable[..., Expr]] = {
    ReduceKind.SUM: sum, ReduceKind.PROD: prod, ReduceKind.MAX: max, ReduceKind.MIN: min,
}  # fmt: skip
"""The functions that reduce over axes, by their kind."""


def _unary(fn: Function) -> Callable[[ExprLike], Expr]:
    def build(x: ExprLike) -> Expr:
        demand_no_truth(x)
        return Call(fn, (as_expr(x),))

    build.__name__ = build.__qualname__ = fn.value
    build.__doc__ = f"Elementwise {fn.value} of *x*."
    return build


abs = _unary(Function.ABS)
exp = _unary(Function.EXP)
log = _unary(Function.LOG)
sqrt = _unary(Function.SQRT)
rsqrt = _unary(Function.RSQRT)
tanh = _unary(Function.TANH)
erf = _unary(Function.ERF)
sin = _unary(Function.SIN)
cos = _unary(Function.COS)
floor = _unary(Function.FLOOR)
ceil = _unary(Function.CEIL)
round = _unary(Function.ROUND)


def sigmoid(x: ExprLike) -> Expr:
    """``1 / (1 + exp(-x))``; 0 below -88.7, where it would be denormal."""
    demand_no_truth(x)
    given = as_expr(x)
    return (1.0 / (1.0 + exp(-widened(given)))).astype(given.dtype)


def widened(x: Expr) -> Expr:
    """*x* in the type in which it is summed: a 16-bit float becomes float32."""
    return x.astype(x.dtype.of_sums)


def _of_one_type(a: ExprLike, b: ExprLike) -> tuple[Expr, Expr]:
    """Both as expressions; a number takes the type of the other one."""
    if isinstance(a, Expr):
        return a, as_expr(b, a.dtype)
    right = as_expr(b)
    return as_expr(a, right.dtype), right


def maximum(a: ExprLike, b: ExprLike) -> Expr:
    """The larger of two values; a NaN operand gives NaN."""
    demand_no_truth(a, b)
    return Binary(BinaryOp.MAX, *_of_one_type(a, b))


def minimum(a: ExprLike, b: ExprLike) -> Expr:
    """The smaller of two values; a NaN operand gives NaN."""
    demand_no_truth(a, b)
    return Binary(BinaryOp.MIN, *_of_one_type(a, b))


def select(cond: Expr, then: ExprLike, other: ExprLike) -> Expr:
    """*then* where *cond* holds, else *other*; the side not taken is not read."""
    if not all(as_expr(side).dtype is DType.BOOL for side in (then, other)):
        demand_no_truth(then, other)
    return Select(_condition(cond), *_of_one_type(then, other))


def all_of(*conditions: Expr) -> Expr:
    """True where every condition holds; there must be at least one."""
    if not conditions:
        raise TypeError("all_of takes at least one condition")
    result = _condition(conditions[0])
    for condition in conditions[1:]:
        result = result & condition
    return result


def _condition(given: Expr) -> Expr:
    demand_no_truth(given)
    return as_expr(given)


def _arg_reduce(kind: ReduceKind) -> Callable[..., ComputeOp]:
    def build(
        shape: Sequence[int],
        fn: Callable[..., ExprLike],
        extent: int,
        *,
        name: str,
        last: bool = False,
    ) -> ComputeOp:
        reducer = max if kind is ReduceKind.MAX else min
        k = reduce_axis(extent, name="k")
        names = tuple(f"i{d}" for d in range(len(shape)))
        best = compute(shape, lambda *i: reducer(fn(*i, k), k), name=f"{name}.value", names=names)
        j = reduce_axis(extent, name="k")
        choose, other = (max, -1) if last else (min, extent)
        return compute(
            shape,
            lambda *i: choose(select(_is_best(fn(*i, j), best[i]), j, other), j),
            name=name,
            names=names,
        )

    build.__name__ = build.__qualname__ = f"arg{kind.value}"
    build.__doc__ = f"""First (or *last*) ``k < extent`` at which ``fn(*i, k)`` is the {kind.value}.

    The result is int64; if a value is NaN, it is the place of the first (or last) NaN, as in numpy.

    Two ordinary stages (the extreme value, then the smallest index that attains it), so every
    rule for reductions applies to it.
    """
    return build


def _is_best(given: ExprLike, best: Expr) -> Expr:
    value = as_expr(given)
    found = value.equal(best)
    return found | value.not_equal(value) if value.dtype.is_float else found


argmax = _arg_reduce(ReduceKind.MAX)
argmin = _arg_reduce(ReduceKind.MIN)
