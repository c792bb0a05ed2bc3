"""The meaning of every scalar operator on numpy values, scalars and arrays alike."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ansorpy.arrays import Array
from ansorpy.ir.dots import DOTS
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import BinaryOp, CompareOp, Function, ReduceKind

__all__ = ["BINARY", "COMBINE", "COMPARE", "FUNCTIONS", "Value", "convert", "quotient"]

Value = Any
"""A numpy array, a numpy scalar, a Python int (for an int64) or a Python bool (for a bool)."""


def quotient(a: Value, b: Value) -> Value:
    """``a / b``; for integers the quotient rounded towards zero, as hardware divides."""
    if np.issubdtype(np.result_type(a), np.integer):
        # Absolute values are avoided because the least number of a type does not have one.
        floor = _floordiv(a, b)
        inexact = (_floormod(a, b) != 0) & ((np.asarray(a) < 0) != (np.asarray(b) < 0))
        return np.where(inexact, floor + 1, floor)
    return np.true_divide(a, b)


def _by_no_zero(apply: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """*apply*, but 0 for the divisor 0, as numpy gives for arrays; Python would raise."""

    def divided(a: Value, b: Value) -> Value:
        return a * 0 if type(b) is int and b == 0 else apply(a, b)

    return divided


def _shifted(apply: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """*apply*, but with nothing left of the operand where the distance is not one of its bits."""

    def shifted(a: Value, b: Value) -> Value:
        x, places = np.asarray(a), np.asarray(b)
        bits = x.dtype.itemsize * 8
        inside = (places >= 0) & (places < bits)
        fill = np.where(x < 0, -1, 0) if apply is operator.rshift else 0
        moved = apply(x, np.where(inside, places, 0).astype(x.dtype))
        return np.where(inside, moved, np.asarray(fill).astype(x.dtype))[()]

    return shifted


_floordiv, _floormod = _by_no_zero(operator.floordiv), _by_no_zero(operator.mod)


def convert(x: Value, to: DType, *, wide: bool = False) -> Value:
    """Convert *x* to *to*, as :class:`Cast` defines it.  If *wide*, every float is a float64."""
    value = np.asarray(x)
    if to is DType.BOOL:
        return value != 0
    if to.is_float:
        return value.astype(np.float64) if wide else to.rounded(value)
    if value.dtype.kind in "fV":
        value = _nearest(value.astype(np.float64), np.dtype(to.of_floats.value))
    return value.astype(to.numpy)


def _nearest(x: Array, kind: np.dtype[Any]) -> Array:
    """Round *x* towards zero and saturate to the integers of *kind*; NaN becomes 0."""
    limits = np.iinfo(kind)
    above, below = x >= float(limits.max), x <= float(limits.min)
    inside = np.where(above | below | np.isnan(x), 0.0, x).astype(kind)
    found: Array = np.where(above, kind.type(limits.max), inside)
    return np.where(below, kind.type(limits.min), found)


def _erf(x: Value) -> Value:
    exact = np.asarray(_ERF(np.asarray(x, dtype=np.float64)))
    return exact.astype(np.result_type(x))


def _fma(a: Value, b: Value, c: Value) -> Value:
    kind = np.result_type(a)
    if np.issubdtype(kind, np.integer):
        return a * b + c
    if kind == np.float64:
        return _fma_double(*(np.asarray(x, np.float64) for x in (a, b, c)))
    wide = np.asarray(a, np.float64) * np.asarray(b, np.float64) + np.asarray(c, np.float64)
    return wide.astype(kind)


def _fma_double(a: Array, b: Array, c: Array) -> Value:
    """``a * b + c`` with the errors of product and sum added back: rounded once, except ties."""
    product = a * b
    a_high, b_high = _high_half(a), _high_half(b)
    a_low, b_low = a - a_high, b - b_high
    lost = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    total = product + c
    other = total - product
    lost = lost + ((product - (total - other)) + (c - other))
    return np.where(np.isfinite(lost), total + lost, total)[()]


def _high_half(x: Array) -> Array:
    """The upper 26 bits of each number (Veltkamp's splitting)."""
    spread = x * 134217729.0
    high: Array = spread - (spread - x)
    return high


def _bits(x: Value) -> Value:
    raw = np.ascontiguousarray(x)
    return raw.view(f"u{raw.dtype.itemsize}").reshape(np.shape(x))[()]


def _from_bits(x: Value) -> Value:
    raw = np.ascontiguousarray(x)
    return raw.view(f"f{raw.dtype.itemsize}").reshape(np.shape(x))[()]


def _scale(y: Value, n: Value) -> Value:
    limited = np.nan_to_num(np.clip(n, -4096, 4096)).astype(np.int32)
    return np.where(np.isnan(n), n, np.ldexp(y, limited))[()]


def _word(*parts: Value) -> Value:
    """The bits of *parts* (8-bit integers, or 16-bit floats as they are stored) in a uint32."""
    bits = 32 // len(parts)
    total: Value = np.uint32(0)
    for n, part in enumerate(parts):
        raw = np.asarray(part)
        if len(parts) == 2:
            raw = raw.astype(ml_dtypes.bfloat16)
        raw = np.ascontiguousarray(raw).view(f"u{bits // 8}").reshape(raw.shape)
        total = total | (raw.astype(np.uint32) << np.uint32(bits * n))
    return total


def _part(word: Value, n: int, kind: DType) -> Value:
    """Part *n* of each word, in the type in which products are summed."""
    bits = kind.bits
    raw = (np.asarray(word) >> np.uint32(bits * n)).astype(f"u{bits // 8}")
    return raw.view(kind.numpy).astype(np.float32 if kind.is_float else np.int32)


def _dot(fn: Function) -> Callable[[Value, Value], Value]:
    dot = DOTS[fn]

    def apply(a: Value, b: Value) -> Value:
        products = [_part(a, n, dot.left) * _part(b, n, dot.right) for n in range(dot.terms)]
        return functools.reduce(operator.add, products)

    return apply


_ERF = np.frompyfunc(math.erf, 1, 1)

BINARY: dict[BinaryOp, Callable[[Value, Value], Value]] = {
    BinaryOp.ADD: operator.add,
    BinaryOp.SUB: operator.sub,
    BinaryOp.MUL: operator.mul,
    BinaryOp.DIV: quotient,
    BinaryOp.FLOORDIV: _floordiv,
    BinaryOp.FLOORMOD: _floormod,
    BinaryOp.MIN: np.minimum,
    BinaryOp.MAX: np.maximum,
    BinaryOp.POW: np.power,
    BinaryOp.AND: np.logical_and,
    BinaryOp.OR: np.logical_or,
    BinaryOp.BIT_AND: operator.and_,
    BinaryOp.BIT_OR: operator.or_,
    BinaryOp.BIT_XOR: operator.xor,
    BinaryOp.SHL: _shifted(operator.lshift),
    BinaryOp.SHR: _shifted(operator.rshift),
}

COMPARE: dict[CompareOp, Callable[[Value, Value], Value]] = {
    CompareOp.LT: operator.lt,
    CompareOp.LE: operator.le,
    CompareOp.GT: operator.gt,
    CompareOp.GE: operator.ge,
    CompareOp.EQ: operator.eq,
    CompareOp.NE: operator.ne,
}

_ELEMENTARY: dict[Function, Callable[..., Value]] = {
    Function.NEG: operator.neg,
    Function.NOT: np.logical_not,
    Function.ABS: np.abs,
    Function.EXP: np.exp,
    Function.LOG: np.log,
    Function.SQRT: np.sqrt,
    Function.RSQRT: lambda x: (1 / np.sqrt(x)).astype(np.result_type(x)),
    Function.TANH: np.tanh,
    Function.ERF: _erf,
    Function.SIN: np.sin,
    Function.COS: np.cos,
    Function.FLOOR: np.floor,
    Function.CEIL: np.ceil,
    Function.ROUND: np.rint,
    Function.FMA: _fma,
    Function.WORD: _word,
    Function.BITS: _bits,
    Function.FROM_BITS: _from_bits,
    Function.SCALE: _scale,
}
FUNCTIONS = _ELEMENTARY | {fn: _dot(fn) for fn in DOTS}

COMBINE: dict[ReduceKind, np.ufunc] = {
    ReduceKind.SUM: np.add,
    ReduceKind.PROD: np.multiply,
    ReduceKind.MAX: np.maximum,
    ReduceKind.MIN: np.minimum,
}
