"""Scalar expressions as C: one function a node kind, listed in :data:`EXPRESSIONS`.

16-bit floats are computed as ``float`` and rounded where they are converted or stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import e as euler
from math import log2
from typing import Any

import numpy as np

from ansorpy.codegen.clike.code import ATOM, MULTIPLY, UNARY, Code
from ansorpy.codegen.clike.operators import chosen, compared, converted, float_suffix
from ansorpy.codegen.cuda.emit.arithmetic import binary, function
from ansorpy.codegen.cuda.emit.elements import element
from ansorpy.codegen.cuda.emit.emitter import Emitter, register_type
from ansorpy.codegen.unsupported import buffer_of, refuse_reduction
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Axis,
    Binary,
    BinaryOp,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Function,
    Load,
    Reduce,
    Select,
    SizeVar,
    Var,
)

__all__ = ["EXPRESSIONS", "narrowed", "read", "stored"]


def _const(e: Emitter, expr: Const) -> Code:
    dtype = expr.type
    if dtype is DType.BOOL:
        return Code("true" if expr.value else "false")
    if dtype.is_float:
        return _float(float(dtype.rounded(float(expr.value))), dtype)
    number = int(expr.value)
    suffix = {DType.UINT32: "u", DType.INT64: "LL", DType.UINT64: "ULL"}.get(dtype, "")
    if dtype in (DType.INT32, DType.INT64) and number == -(1 << (dtype.bits - 1)):
        return Code(f"(-{-number - 1}{suffix} - 1)")
    return Code(f"{number}{suffix}", ATOM if number >= 0 else UNARY)


def _float(number: float, dtype: DType) -> Code:
    level = UNARY if np.signbit(number) else ATOM
    if np.isfinite(number):
        return Code(f"{number!r}{float_suffix(dtype)}", level)
    nan, infinity = _NOT_FINITE[dtype is DType.FLOAT64]
    if np.isnan(number):
        return Code(nan)
    return Code(infinity if number > 0 else f"-{infinity}", level)


_NOT_FINITE = (
    ("__int_as_float(0x7fc00000)", "__int_as_float(0x7f800000)"),
    ("__longlong_as_double(0x7ff8000000000000LL)", "__longlong_as_double(0x7ff0000000000000LL)"),
)
"""NaN and infinity of float and of double."""


def _var(e: Emitter, expr: Var) -> Code:
    return e.variables[expr]


def _binary(e: Emitter, expr: Binary) -> Code:
    return binary(e, expr.op, expr.dtype, e.value(expr.a), e.value(expr.b))


def _compare(e: Emitter, expr: Compare) -> Code:
    a, b = e.value(expr.a), e.value(expr.b)
    return compared(expr.op.value, a, b)


def _call(e: Emitter, expr: Call) -> Code:
    return function(e, expr.fn, expr.args[0].dtype, [e.value(arg) for arg in expr.args])


def _select(e: Emitter, expr: Select) -> Code:
    """Emit ``?:``, which does not evaluate the side not taken either."""
    cond, then, other = (e.value(x) for x in (expr.cond, expr.then, expr.other))
    return chosen(cond, then, other)


_NEAREST = {
    DType.INT32: "to_int", DType.INT64: "to_long", DType.UINT64: "to_unsigned_long",
}  # fmt: skip
"""The helpers that convert floats to integers."""


def _cast(e: Emitter, expr: Cast) -> Code:
    source, wanted = expr.x.dtype, expr.type
    x = _to_round(e, expr.x, wanted)
    if source is wanted:
        return x
    if wanted is DType.BOOL:
        return compared("!=", x, Code("0"))
    if wanted.is_half:
        return Code(f"to_float({narrowed(e, _float_of(e, x, source, wanted), wanted).text})")
    if source.is_float and wanted.is_int:
        e.need("integers")
        whole = Code(f"{_NEAREST[wanted.of_floats]}({x.text})")
        return whole if wanted.of_floats is wanted else converted(register_type(wanted), whole)
    return converted(register_type(wanted), x)


def _to_round(e: Emitter, x: Expr, wanted: DType) -> Code:
    """*x*, which is converted to *wanted* next.

    Exponentials are computed by the hardware's power of two if they are rounded to 16 bits: its
    error and that of the exponent are less than 2^-16 of the result.
    """
    exponential = isinstance(x, Call) and x.fn is Function.EXP and x.dtype is DType.FLOAT32
    if not wanted.is_half or not exponential or x in e.known or x in e.repeated:
        return e.value(x)
    assert isinstance(x, Call)
    power, scale = x.args[0], _LOG2_E
    match power:
        case Binary(BinaryOp.MUL, other, Const(factor, _)):
            power, scale = other, float(factor) * _LOG2_E
    e.need("power_of_two")
    scaled = f"{e.value(power).at(MULTIPLY)} * {float(np.float32(scale))!r}f"
    return Code(f"power_of_two<{'true' if wanted is DType.FLOAT16 else 'false'}>({scaled})")


_LOG2_E = log2(euler)


def _float_of(e: Emitter, x: Code, source: DType, wanted: DType) -> Code:
    """Convert *x* to a float32 that rounds to the same 16-bit float *wanted* as *x* itself does."""
    if source.passes_float32(wanted):
        return converted("float", x)
    e.need("odd")
    return Code(f"to_odd({x.text})")


def narrowed(e: Emitter, x: Code, dtype: DType) -> Code:
    """Convert a computed value to the form in which elements of *dtype* are stored."""
    if not dtype.is_half:
        return x
    e.need(dtype.value)
    return Code(f"to_{dtype.value}({x.text})")


def stored(e: Emitter, expr: Expr, dtype: DType) -> Code:
    """Emit *expr* in the form in which elements of *dtype* are stored.

    A value that is only copied, or is rounded already, is not rounded again.
    """
    if not dtype.is_half:
        return e.value(expr)
    if isinstance(expr, Load) and expr.dtype is dtype and expr not in e.known:
        return _place(e, expr)
    if isinstance(expr, Cast) and expr.type is dtype and expr not in e.repeated:
        return narrowed(e, _float_of(e, _to_round(e, expr.x, dtype), expr.x.dtype, dtype), dtype)
    return narrowed(e, e.value(expr), dtype)


def read(e: Emitter, element_text: str, dtype: DType) -> Code:
    """Convert an element to the type it is computed in."""
    if not dtype.is_half:
        return Code(element_text)
    e.need(dtype.value)
    return Code(f"to_float({element_text})")


def _load(e: Emitter, expr: Load) -> Code:
    return read(e, _place(e, expr).text, expr.dtype)


def _place(e: Emitter, expr: Load) -> Code:
    """The element that *expr* reads."""
    found = e.in_lanes.get(expr)
    if found is not None:
        return found
    return Code(element(e, buffer_of(expr), expr.indices))


EXPRESSIONS: Mapping[type[Expr], Callable[[Emitter, Any], Code]] = {
    Const: _const, Var: _var, Axis: _var, SizeVar: _var, Binary: _binary, Compare: _compare,
    Call: _call, Select: _select, Cast: _cast, Load: _load, Reduce: refuse_reduction,
}  # fmt: skip
