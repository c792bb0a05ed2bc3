"""Scalar expressions as C: one function a node kind, listed in :data:`EXPRESSIONS`.

16-bit floats are computed as ``float`` and rounded where they are converted or stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ansorpy.codegen.c.arithmetic import as_type, binary, function, helper_call
from ansorpy.codegen.c.elements import element
from ansorpy.codegen.c.emitter import Emitter
from ansorpy.codegen.c.types import register_type, short_name
from ansorpy.codegen.clike.code import ATOM, UNARY, Code
from ansorpy.codegen.clike.indices import index, is_choice_of_numbers, is_index
from ansorpy.codegen.clike.operators import chosen, compared, float_suffix
from ansorpy.codegen.clike.sharing import reads_twice, sharing
from ansorpy.codegen.unsupported import buffer_of, refuse_reduction
from ansorpy.ir.analysis import interval
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Axis,
    Binary,
    Call,
    Cast,
    Compare,
    CompareOp,
    Const,
    Expr,
    Load,
    Reduce,
    Select,
    SizeVar,
    Var,
)

__all__ = ["EXPRESSIONS", "branches", "decided", "narrowed", "read", "stored"]


def _const(e: Emitter, expr: Const) -> Code:
    dtype = expr.type
    if dtype is DType.BOOL:
        return Code("true" if expr.value else "false")
    if dtype.is_float:
        return _float(float(dtype.rounded(float(expr.value))), dtype)
    number, low = dtype.wrapped(int(expr.value)), dtype.limits[0]
    if dtype.bits >= 32 and number < 0 and number == low:
        return Code(f"INT{dtype.bits}_MIN")  # the type cannot represent its magnitude
    suffix = "u" if dtype in (DType.UINT32, DType.UINT64) else ""
    return Code(f"{number}{suffix}", ATOM if number >= 0 else UNARY)


def _float(number: float, dtype: DType) -> Code:
    level = UNARY if np.signbit(number) else ATOM
    if np.isfinite(number):
        exact = number if dtype is DType.FLOAT64 else np.float32(number)
        return Code(f"{exact!s}{float_suffix(dtype)}", level)
    if np.isnan(number):
        return Code("NAN")
    return Code("INFINITY" if number > 0 else "-INFINITY", level)


def _var(e: Emitter, expr: Var) -> Code:
    return e.variables[expr]


def _binary(e: Emitter, expr: Binary) -> Code:
    wraps = not expr.dtype.is_float and e.may_wrap(expr)
    if is_index(expr) and not wraps:
        return index(e, expr)
    return binary(e, expr.op, expr.dtype, _side(e, expr.a), _side(e, expr.b), wraps=wraps)


def _side(e: Emitter, expr: Expr) -> Code:
    """Emit an operand, whose type C computes the result in; outside of index arithmetic, nothing
    proves that a narrow index suffices."""
    found = e.value(expr)
    if isinstance(expr, Const) or found.wide or e.unit.style.word_bits == 64 or not is_index(expr):
        return found
    return as_type(found, e.indices.wide)


def _compare(e: Emitter, expr: Compare) -> Code:
    known = decided(expr)
    if known is not None:
        return Code("true" if known else "false")
    return compared(expr.op.value, e.value(expr.a), e.value(expr.b))


def decided(expr: Compare) -> bool | None:
    """The value of a comparison that always has the same result, which compilers warn about; None
    for any other."""
    if expr.a.dtype.is_float:
        return None
    if expr.a is expr.b:
        return expr.op in (CompareOp.LE, CompareOp.GE, CompareOp.EQ)
    (low, high), (least, most) = _range(expr.a), _range(expr.b)
    return interval.decided(expr.op, low - most, high - least)


def _range(expr: Expr) -> tuple[int, int]:
    """The lowest and the highest value of an integer, as its type and literals tell."""
    if not isinstance(expr, Const):
        return expr.dtype.limits
    number = expr.type.wrapped(int(expr.value))
    return number, number


def _call(e: Emitter, expr: Call) -> Code:
    if is_index(expr) and not e.may_wrap(expr):
        return index(e, expr)
    return function(e, expr.fn, expr.args[0].dtype, [e.value(arg) for arg in expr.args])


def _select(e: Emitter, expr: Select) -> Code:
    """Emit ``?:``, which does not evaluate the side not taken either."""
    if is_index(expr) and not e.may_wrap(expr):
        return index(e, expr)
    if any(reads_twice(side) for side in (expr.then, expr.other)):
        return branches(e, expr, register_type(expr.dtype), lambda e, side: e.value(side))
    cond, then, other = e.value(expr.cond), _side(e, expr.then), _side(e, expr.other)
    if is_choice_of_numbers(expr) and expr.dtype in (DType.INT64, DType.UINT64):
        then = as_type(then, register_type(expr.dtype))
    return chosen(cond, then, other)


def branches(e: Emitter, expr: Select, kind: str, emit: Callable[[Emitter, Expr], Code]) -> Code:
    """Emit a choice between values of the C type *kind* as an ``if`` statement.

    Values that a branch uses several times are named inside the branch.
    """
    name, known = e.names.fresh("t"), e.known
    cond = e.value(expr.cond).text
    e.line(f"{kind} {name};")
    for block, side in ((e.block(f"if ({cond})"), expr.then), (e.otherwise(), expr.other)):
        with block, sharing(e, side):
            e.known.update(known)
            e.line(f"{name} = {emit(e, side).text};")
    return Code(name)


def _cast(e: Emitter, expr: Cast) -> Code:
    x, source, wanted = e.value(expr.x), expr.x.dtype, expr.type
    if source is wanted:
        return x
    if wanted is DType.BOOL:
        return compared("!=", x, Code("0"))
    if wanted.is_half:
        rounded = narrowed(e, _float_of(e, x, source, wanted), wanted)
        return helper_call(e, f"from_{short_name(wanted)}", rounded)
    if source.is_float and wanted.is_int:
        real = "f64" if source is DType.FLOAT64 else "f32"
        x = helper_call(e, f"{short_name(wanted.of_floats)}_of_{real}", x)
        return x if wanted.of_floats is wanted else as_type(x, register_type(wanted))
    if register_type(source) == register_type(wanted):
        return x
    return as_type(x, register_type(wanted))


def _float_of(e: Emitter, x: Code, source: DType, wanted: DType) -> Code:
    """Convert *x* to a float32 that rounds to the same 16-bit float *wanted* as *x* itself does."""
    if not source.passes_float32(wanted):
        wide = DType.FLOAT64 if source is DType.FLOAT64 or source.bits < 64 else source
        return helper_call(e, f"odd_{short_name(wide)}", x)
    return x if register_type(source) == "float" else as_type(x, "float")


def narrowed(e: Emitter, x: Code, dtype: DType) -> Code:
    """Convert a computed value to the form in which elements of *dtype* are stored."""
    return helper_call(e, f"to_{short_name(dtype)}", x) if dtype.is_half else x


def stored(e: Emitter, expr: Expr, dtype: DType) -> Code:
    """Emit *expr* in the form in which elements of *dtype* are stored.

    A value that is only copied, or is rounded already, is not rounded again.
    """
    if not dtype.is_half:
        return e.value(expr)
    if isinstance(expr, Load) and expr not in e.known:
        return Code(element(e, buffer_of(expr), expr.indices))
    if isinstance(expr, Cast) and expr.x.dtype is not dtype and expr not in e.repeated:
        return narrowed(e, _float_of(e, e.value(expr.x), expr.x.dtype, dtype), dtype)
    return narrowed(e, e.value(expr), dtype)


def read(e: Emitter, place: str, dtype: DType) -> Code:
    """Convert the element at *place* to the type it is computed in."""
    if dtype is DType.BOOL:
        return compared("!=", Code(place), Code("0"))
    if dtype.is_half:
        return helper_call(e, f"from_{short_name(dtype)}", Code(place))
    return Code(place)


def _load(e: Emitter, expr: Load) -> Code:
    return read(e, element(e, buffer_of(expr), expr.indices), expr.dtype)


EXPRESSIONS: Mapping[type[Expr], Callable[[Emitter, Any], Code]] = {
    Const: _const, Var: _var, Axis: _var, SizeVar: _var, Binary: _binary, Compare: _compare,
    Call: _call, Select: _select, Cast: _cast, Load: _load, Reduce: refuse_reduction,
}  # fmt: skip
