"""Elementwise functions with numpy broadcasting, and conversions of the element type."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ansorpy.graph.ops import angles
from ansorpy.graph.ops.base import (
    Op,
    Pattern,
    Rows,
    Shape,
    TensorType,
    are_broadcast_rows,
    broadcast,
    common_dtype,
)
from ansorpy.graph.ops.indexing import broadcast_index, clamped
from ansorpy.graph.ops.names import Names, image_axes
from ansorpy.ir import builders as b
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Const, Expr
from ansorpy.ir.interpret.numerics import convert
from ansorpy.ir.tensor import ComputeOp, Tensor, compute

__all__ = ["FUNCTIONS", "Cast", "Elementwise", "Fn", "power"]


class Fn(Enum):
    """Elementwise functions; ``Elementwise.params`` holds their literal parameters."""

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"
    MAX = "max"
    MIN = "min"
    POW = "pow"
    INTEGER_POW = "integer_pow"
    RELU = "relu"
    LEAKY_RELU = "leaky_relu"
    PRELU = "prelu"
    ELU = "elu"
    CELU = "celu"
    SELU = "selu"
    SIGMOID = "sigmoid"
    HARD_SIGMOID = "hard_sigmoid"
    TANH = "tanh"
    SOFTPLUS = "softplus"
    SOFTSIGN = "softsign"
    CLIP = "clip"
    EXP = "exp"
    LOG = "log"
    SQRT = "sqrt"
    RECIPROCAL = "reciprocal"
    NEG = "neg"
    ABS = "abs"
    ERF = "erf"
    FLOOR = "floor"
    CEIL = "ceil"
    ROUND = "round"
    SIGN = "sign"
    SIN = "sin"
    COS = "cos"
    TAN = "tan"
    ASIN = "asin"
    ACOS = "acos"
    ATAN = "atan"
    SINH = "sinh"
    COSH = "cosh"
    ASINH = "asinh"
    ACOSH = "acosh"
    ATANH = "atanh"
    MOD = "mod"
    REMAINDER = "remainder"
    IS_NAN = "is_nan"
    EQUAL = "equal"
    LESS = "less"
    LESS_EQUAL = "less_equal"
    AND = "and"
    OR = "or"
    NOT = "not"
    WHERE = "where"
    BIT_AND = "bit_and"
    BIT_OR = "bit_or"
    BIT_XOR = "bit_xor"
    BIT_NOT = "bit_not"
    SHIFT_LEFT = "shift_left"
    SHIFT_RIGHT = "shift_right"


_COMPARISONS = frozenset({Fn.EQUAL, Fn.LESS, Fn.LESS_EQUAL, Fn.IS_NAN})
_LOGIC = frozenset({Fn.AND, Fn.OR, Fn.NOT})


@dataclass(frozen=True)
class Elementwise(Op):
    """``fn`` at each element, with numpy broadcasting of operands."""

    fn: Fn
    params: tuple[float, ...] = ()
    pattern: ClassVar[Pattern] = Pattern.ELEMENTWISE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        types = [t.dtype for t in inputs]
        conditions = types if self.fn in _LOGIC else types[:1] if self.fn is Fn.WHERE else []
        if any(dtype is not DType.BOOL for dtype in conditions):
            raise ValueError("a condition is not boolean")
        common = common_dtype(inputs[1:] if self.fn is Fn.WHERE else inputs)
        dtype = DType.BOOL if self.fn in _COMPARISONS else common
        return TensorType(broadcast([t.shape for t in inputs]), dtype)

    def define(self, inputs: Sequence[Tensor | Const], names: Names) -> ComputeOp:
        """``fn`` over the broadcast of *inputs*; a constant of one element may be a literal."""
        shape = broadcast([x.shape for x in inputs if isinstance(x, Tensor)])
        function = FUNCTIONS[self.fn]

        def body(*i: Expr) -> Expr:
            return function(*(_element(x, i, shape) for x in inputs), *self.params)

        axes = image_axes(len(shape))
        return compute(shape, body, name=names.fresh(self.fn.value), names=axes)

    def reordered(self, order: Shape) -> Op:
        return self

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return are_broadcast_rows(operands, shape)

    def evaluate(self, inputs: Sequence[NDArray[Any]]) -> NDArray[Any] | None:
        if self.fn is Fn.DIV and inputs[0].dtype.kind == "f":
            with np.errstate(all="ignore"):  # results are infinite or NaN, as in kernels
                return np.asarray(np.true_divide(*inputs))
        function = _IN_NUMPY.get(self.fn)
        return None if function is None else np.asarray(function(*inputs))

    @property
    def label(self) -> str:
        return self.fn.value


@dataclass(frozen=True)
class Cast(Op):
    """Convert to ``dtype``."""

    dtype: DType
    pattern: ClassVar[Pattern] = Pattern.ELEMENTWISE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(inputs[0].shape, self.dtype)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        (x,) = inputs
        axes = image_axes(x.ndim)
        return compute(
            x.shape, lambda *i: x[i].astype(self.dtype), name=names.fresh("cast"), names=axes
        )

    def reordered(self, order: Shape) -> Op:
        return self

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return are_broadcast_rows(operands, shape)

    def evaluate(self, inputs: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return np.asarray(convert(inputs[0], self.dtype))


def _element(x: Tensor | Const, index: Sequence[Expr], shape: Shape) -> Expr:
    return x[broadcast_index(x.shape, index, shape)] if isinstance(x, Tensor) else x


def power(x: Expr, exponent: float) -> Expr:
    """``x ** exponent`` for a literal exponent and ``x >= +0``.

    Multiples of 1/4 between -2 and 2, except 0, become products of square roots (each correctly
    rounded, so the error stays within a few ulp); other exponents use the general power.
    """
    quarters = _quarters(exponent)
    if not quarters:
        return x**exponent
    whole, part = divmod(abs(quarters), 4)
    factors = [x] * whole
    root = b.sqrt(x)
    factors += [root] if part & 2 else []
    factors += [b.sqrt(root)] if part & 1 else []
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    return product if exponent > 0 else 1.0 / product


def _quarters(exponent: float) -> int:
    """The quarters in *exponent*; 0 unless they are few and whole."""
    quarters = exponent * 4
    return int(quarters) if abs(quarters) <= 8 and quarters == int(quarters) else 0


def _literal_power(x: Expr, y: Expr) -> Expr:
    if not isinstance(y, Const) or not x.dtype.is_float:
        return x**y
    exponent = float(y.value)
    if _quarters(exponent) % 4:
        # The root of -0 is -0, and that of -inf is NaN, but their powers are 0 and inf.
        x = b.select(x.equal(-math.inf), math.inf, x + 0.0)
    return power(x, exponent)


_EXPONENT_BITS = 6
"""Numbers but -1, 0 and 1 to the power of 64 and more have more than 64 bits."""


def _integer_power(x: Expr, y: Expr) -> Expr:
    """``x ** y`` of int64 numbers, by repeated squaring, as far as it fits; below 1, it is 0.

    Of even numbers, it is also 0 where only higher bits are left.
    """
    most = (1 << _EXPONENT_BITS) - 1
    size = b.select(y > most, (y & 1) + (most - 1), y)
    found, square = b.select((size & 1).equal(1), x, 1), x
    for n in range(1, _EXPONENT_BITS):
        square = square * square
        found = b.select(((size >> n) & 1).equal(1), found * square, found)
    found = b.select((y > most) & (x & 1).equal(0), 0, found)
    is_unit = b.abs(x).equal(1)
    below = b.select(is_unit, b.select((y & 1).equal(1), x, 1), 0)
    return b.select(y < 0, below, found)


@angles.widely
def _elu(x: Expr, alpha: float) -> Expr:
    return b.select(x < 0, alpha * _exp_less_one(x), x)


@angles.widely
def _celu(x: Expr, alpha: float) -> Expr:
    return b.select(x < 0, alpha * _exp_less_one(x / alpha), x)


@angles.widely
def _selu(x: Expr, alpha: float, gamma: float) -> Expr:
    return gamma * _elu(x, alpha)


def _exp_less_one(x: Expr) -> Expr:
    """``exp(x) - 1``; near 0, where the difference would cancel, it is the exponential series."""
    terms = 12 if x.dtype is DType.FLOAT64 else 6
    near = x * angles.polynomial(x, [1 / math.factorial(n) for n in range(terms, 0, -1)])
    return b.select(b.abs(x) < 0.25, near, b.exp(x) - 1.0)


def _softplus(x: Expr) -> Expr:
    """``log(1 + exp(x))`` as ``max(x, 0) + log(1 + exp(-|x|))``, which cannot overflow."""
    return b.maximum(x, 0) + _log_above_one(b.exp(-b.abs(x)))


def _log_above_one(x: Expr) -> Expr:
    """``log(1 + x)`` for x >= 0; the quotient corrects the rounding of the sum."""
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
    # A dividend smaller than the divisor is its own remainder, including -0.
    return b.select(size < part, x, b.select(x < 0, -left, left))


FUNCTIONS: dict[Fn, Callable[..., Expr]] = {
    Fn.ADD: lambda x, y: x + y,
    Fn.SUB: lambda x, y: x - y,
    Fn.MUL: lambda x, y: x * y,
    Fn.DIV: lambda x, y: x / y,
    Fn.MAX: b.maximum,
    Fn.MIN: b.minimum,
    Fn.POW: _literal_power,
    Fn.INTEGER_POW: _integer_power,
    Fn.RELU: lambda x: b.maximum(x, 0),
    Fn.LEAKY_RELU: lambda x, alpha: b.select(x < 0, x * alpha, x),
    Fn.PRELU: lambda x, slope: b.select(x < 0, x * slope, x),
    Fn.ELU: _elu,
    Fn.CELU: _celu,
    Fn.SELU: _selu,
    Fn.SIGMOID: b.sigmoid,
    Fn.HARD_SIGMOID: lambda x, alpha, beta: b.maximum(b.minimum(x * alpha + beta, 1), 0),
    Fn.TANH: b.tanh,
    Fn.SOFTPLUS: _softplus,
    Fn.SOFTSIGN: lambda x: x / (1.0 + b.abs(x)),
    Fn.CLIP: clamped,
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
    Fn.NOT: lambda x: ~x,
    Fn.WHERE: b.select,
    Fn.BIT_AND: lambda x, y: x & y,
    Fn.BIT_OR: lambda x, y: x | y,
    Fn.BIT_XOR: lambda x, y: x ^ y,
    Fn.BIT_NOT: lambda x: ~x,
    Fn.SHIFT_LEFT: lambda x, y: x << y,
    Fn.SHIFT_RIGHT: lambda x, y: x >> y,
}

_IN_NUMPY: dict[Fn, Callable[..., Any]] = {
    Fn.ADD: np.add, Fn.SUB: np.subtract, Fn.MUL: np.multiply, Fn.MAX: np.maximum,
    Fn.MIN: np.minimum,
}  # fmt: skip
"""Functions that passes apply to constants with numpy."""
