"""Elementwise functions, broadcast as numpy does; size-one constants become literals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansorpy.graph.op import Cast, Elementwise, Fn, Shape, broadcast
from ansorpy.graph.ops import angles
from ansorpy.graph.ops.names import Names, image_axes
from ansorpy.graph.ops.windows import broadcast_index
from ansorpy.ir import builders as b
from ansorpy.ir.expr import Call, Const, Expr
from ansorpy.ir.functions import Function
from ansorpy.ir.tensor import ComputeOp, Tensor, compute

__all__ = ["cast", "elementwise", "power"]

Operand = Tensor | Const
"""A tensor, or a constant of one element as a literal."""


def elementwise(op: Elementwise, operands: Sequence[Operand], names: Names) -> ComputeOp:
    """``fn`` over the broadcast of *operands*."""
    shape = broadcast([x.shape for x in operands if isinstance(x, Tensor)])
    function = FUNCTIONS[op.fn]

    def body(*i: Expr) -> Expr:
        return function(*(_element(x, i, shape) for x in operands), *op.params)

    return compute(shape, body, name=names.fresh(op.fn.value), names=_axes(shape))


def cast(op: Cast, operands: Sequence[Operand], names: Names) -> ComputeOp:
    """The tensor converted to ``op.dtype``."""
    (x,) = (x for x in operands if isinstance(x, Tensor))
    return compute(
        x.shape, lambda *i: x[i].astype(op.dtype), name=names.fresh("cast"), names=_axes(x.shape)
    )


def _axes(shape: Shape) -> tuple[str, ...]:
    return image_axes(len(shape))


def _element(x: Operand, index: Sequence[Expr], shape: Shape) -> Expr:
    return x[broadcast_index(x.shape, index, shape)] if isinstance(x, Tensor) else x


def power(x: Expr, exponent: float) -> Expr:
    """``x ** exponent`` for a literal exponent.

    Multiples of 1/4 between -2 and 2, except 0, become products of square roots (each correctly
    rounded, so the error stays within a few ulp); other exponents use the general power.
    """
    quarters = exponent * 4
    if quarters != int(quarters) or not 0 < abs(quarters) <= 8:
        return x**exponent
    whole, part = divmod(int(abs(quarters)), 4)
    factors = [x] * whole
    root = b.sqrt(x)
    factors += [root] if part & 2 else []
    factors += [b.sqrt(root)] if part & 1 else []
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    return product if exponent > 0 else 1.0 / product


def _literal_power(x: Expr, y: Expr) -> Expr:
    return power(x, float(y.value)) if isinstance(y, Const) and x.dtype.is_float else x**y


def _elu(x: Expr, alpha: float) -> Expr:
    return b.select(x < 0, alpha * (b.exp(x) - 1.0), x)


def _selu(x: Expr, alpha: float, gamma: float) -> Expr:
    return gamma * b.select(x > 0, x, alpha * (b.exp(x) - 1.0))


def _softplus(x: Expr) -> Expr:
    """``log(1 + exp(x))`` as ``max(x, 0) + log(1 + exp(-|x|))``, which cannot overflow."""
    return b.maximum(x, 0) + _log_above_one(b.exp(-b.abs(x)))


def _log_above_one(x: Expr) -> Expr:
    """``log(1 + x)`` of x >= 0: the quotient undoes the rounding of the sum."""
    above = 1.0 + x
    return b.select(above > 1, b.log(above) * (x / (above - 1.0)), x)


def _sign(x: Expr) -> Expr:
    """-1, 0 or 1; zeros and NaN are unchanged."""
    if not x.dtype.is_signed:
        return b.minimum(x, 1)
    return b.select(x > 0, 1, b.select(x < 0, -1, x))


def _remainder(x: Expr, y: Expr) -> Expr:
    """The exact remainder of ``x / y`` with the sign of *x*, as ``fmod``."""
    if not x.dtype.is_float:
        return x - x / y * y
    size, part = b.abs(x), b.abs(y)
    left = size % part
    # What is smaller is its own remainder, also the zero below zero.
    return b.select(size < part, x, b.select(x < 0, -left, left))


FUNCTIONS: dict[Fn, Callable[..., Expr]] = {
    Fn.ADD: lambda x, y: x + y,
    Fn.SUB: lambda x, y: x - y,
    Fn.MUL: lambda x, y: x * y,
    Fn.DIV: lambda x, y: x / y,
    Fn.MAX: b.maximum,
    Fn.MIN: b.minimum,
    Fn.POW: _literal_power,
    Fn.RELU: lambda x: b.maximum(x, 0),
    Fn.LEAKY_RELU: lambda x, alpha: b.select(x < 0, x * alpha, x),
    Fn.PRELU: lambda x, slope: b.select(x < 0, x * slope, x),
    Fn.ELU: _elu,
    Fn.CELU: lambda x, alpha: b.select(x < 0, alpha * (b.exp(x / alpha) - 1.0), x),
    Fn.SELU: _selu,
    Fn.SIGMOID: b.sigmoid,
    Fn.HARD_SIGMOID: lambda x, alpha, beta: b.maximum(b.minimum(x * alpha + beta, 1), 0),
    Fn.TANH: b.tanh,
    Fn.SOFTPLUS: _softplus,
    Fn.SOFTSIGN: lambda x: x / (1.0 + b.abs(x)),
    Fn.CLIP: lambda x, low, high: b.minimum(b.maximum(x, low), high),
    Fn.EXP: b.exp,
    Fn.LOG: b.log,
    Fn.SQRT: b.sqrt,
    Fn.RECIPROCAL: lambda x: 1.0 / x,
    Fn.NEG: lambda x: -x,
    Fn.ABS: b.abs,
    Fn.ERF: b.erf,
    Fn.FLOOR: b.floor,
    Fn.CEIL: b.ceil,
    Fn.ROUND: b.round,
    Fn.SIGN: _sign,
    Fn.SIN: b.sin,
    Fn.COS: b.cos,
    Fn.TAN: lambda x: b.sin(x) / b.cos(x),
    Fn.ASIN: angles.asin,
    Fn.ACOS: angles.acos,
    Fn.ATAN: angles.atan,
    Fn.SINH: angles.sinh,
    Fn.COSH: angles.cosh,
    Fn.ASINH: angles.asinh,
    Fn.ACOSH: angles.acosh,
    Fn.ATANH: angles.atanh,
    Fn.MOD: lambda x, y: x % y,
    Fn.REMAINDER: _remainder,
    Fn.IS_NAN: lambda x: x.not_equal(x),
    Fn.EQUAL: lambda x, y: x.equal(y),
    Fn.LESS: lambda x, y: x < y,
    Fn.LESS_EQUAL: lambda x, y: x <= y,
    Fn.AND: lambda x, y: x & y,
    Fn.OR: lambda x, y: x | y,
    Fn.NOT: lambda x: Call(Function.NOT, (x,)),
    Fn.WHERE: b.select,
}
