"""What every scalar operator means on numpy values; scalars and arrays alike."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import BinaryOp, CompareOp, Function, ReduceKind

__all__ = ["BINARY", "COMBINE", "COMPARE", "FUNCTIONS", "Value", "convert", "quotient"]

Value = Any
"""A numpy array, a numpy scalar, or a Python int for an int64 or bool for a bool."""

Array = npt.NDArray[Any]


def quotient(a: Value, b: Value) -> Value:
    """``a / b``; of integers the quotient rounded towards zero, as machines divide."""
    if np.issubdtype(np.result_type(a), np.integer):
        rounded = np.abs(a) // np.abs(b)
        return np.where((np.asarray(a) < 0) != (np.asarray(b) < 0), -rounded, rounded)
    return np.true_divide(a, b)


def convert(x: Value, to: DType, *, wide: bool = False) -> Value:
    """*x* as *to*; floats become integers towards zero.  With *wide* every float is a float64."""
    numpy_type = np.dtype(np.float64) if wide and to.is_float else to.numpy
    value = np.asarray(x)
    if to is DType.BOOL:
        return value != 0
    if not to.is_float and value.dtype.kind in "fV":
        value = np.trunc(value.astype(np.float64))
    return value.astype(numpy_type)


def _erf(x: Value) -> Value:
    exact = np.asarray(_ERF(np.asarray(x, dtype=np.float64)))
    return exact.astype(np.result_type(x))


def _fma(a: Value, b: Value, c: Value) -> Value:
    kind = np.result_type(a)
    if np.issubdtype(kind, np.integer):
        return a * b + c
    wide = np.asarray(a, np.float64) * np.asarray(b, np.float64) + np.asarray(c, np.float64)
    return wide.astype(kind)


_ERF = np.frompyfunc(math.erf, 1, 1)

BINARY: dict[BinaryOp, Callable[[Value, Value], Value]] = {
    BinaryOp.ADD: operator.add,
    BinaryOp.SUB: operator.sub,
    BinaryOp.MUL: operator.mul,
    BinaryOp.DIV: quotient,
    BinaryOp.FLOORDIV: operator.floordiv,
    BinaryOp.FLOORMOD: operator.mod,
    BinaryOp.MIN: np.minimum,
    BinaryOp.MAX: np.maximum,
    BinaryOp.POW: np.power,
    BinaryOp.AND: np.logical_and,
    BinaryOp.OR: np.logical_or,
}

COMPARE: dict[CompareOp, Callable[[Value, Value], Value]] = {
    CompareOp.LT: operator.lt,
    CompareOp.LE: operator.le,
    CompareOp.GT: operator.gt,
    CompareOp.GE: operator.ge,
    CompareOp.EQ: operator.eq,
    CompareOp.NE: operator.ne,
}

FUNCTIONS: dict[Function, Callable[..., Value]] = {
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
}

COMBINE: dict[ReduceKind, np.ufunc] = {
    ReduceKind.SUM: np.add,
    ReduceKind.PROD: np.multiply,
    ReduceKind.MAX: np.maximum,
    ReduceKind.MIN: np.minimum,
}
