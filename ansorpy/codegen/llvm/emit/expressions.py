"""Emits scalar expressions, with one function per node kind, listed in :data:`EXPRESSIONS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ansorpy.codegen.llvm.emit.accesses import access, load
from ansorpy.codegen.llvm.emit.arithmetic import (
    FLOAT_BINARY,
    choose,
    compare_values,
    convert,
    integer_binary,
)
from ansorpy.codegen.llvm.emit.conversions import bitcast, from_stored, to_stored
from ansorpy.codegen.llvm.emit.dots import dot, word
from ansorpy.codegen.llvm.emit.indices import compare, index_value, is_index
from ansorpy.codegen.llvm.emit.math import FUNCTIONS, library_call
from ansorpy.codegen.llvm.emit.text import Value, float_literal, register_type
from ansorpy.codegen.llvm.emit.transposes import load_transposed
from ansorpy.codegen.unsupported import buffer_of, refuse_reduction
from ansorpy.ir.dots import DOTS
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
    is_zero,
)

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emit.emitter import Emitter

__all__ = ["EXPRESSIONS"]


def _const(e: Emitter, expr: Const) -> Value:
    element = register_type(expr.type)
    if element == "i1":
        return Value("i1", "true" if expr.value else "false", 0, 0)
    if expr.type.is_float:
        number = float(expr.value)
        if expr.type.bits == 16:  # the register has more precision
            number = float(expr.type.rounded(number))
        return Value(element, float_literal(number, element), 0, 0)
    return Value(element, str(int(expr.value)), 0, 0)


def _var(e: Emitter, expr: Var) -> Value:
    return index_value(e, e.env[expr])


def _binary(e: Emitter, expr: Binary) -> Value:
    if is_index(e, expr) and expr.op not in (BinaryOp.DIV, BinaryOp.POW):
        return index_value(e, e.index(expr))
    if expr.op in (BinaryOp.AND, BinaryOp.OR):
        return _logic(e, expr)
    a, b = e.value(expr.a), e.value(expr.b)
    if expr.op is BinaryOp.POW:
        return library_call(e, "pow", a, b)
    if a.is_float:
        return FLOAT_BINARY[expr.op](e, a, b)
    return integer_binary(e, expr.op, expr.dtype, a, b)


def _logic(e: Emitter, expr: Binary) -> Value:
    """``and``/``or`` of conditions, folded when bounds decide one side."""
    absorbing = "false" if expr.op is BinaryOp.AND else "true"
    a = e.value(expr.a)
    if a.text == absorbing:
        return a
    b = e.value(expr.b)
    if b.text == absorbing or a.text in ("true", "false"):
        return b
    if b.text in ("true", "false"):
        return a
    level = max(a.level, b.level)
    a, b = e.unified(a, b)
    name = "and" if expr.op is BinaryOp.AND else "or"
    return Value("i1", e.pure(level, f"{name} {a.type} {a.text}, {b.text}"), a.lanes, level)


def _compare(e: Emitter, expr: Compare) -> Value:
    if is_index(e, expr.a) and is_index(e, expr.b):
        return compare(e, expr.op, e.index(expr.a), e.index(expr.b))
    return compare_values(e, expr.op, expr.a.dtype, e.value(expr.a), e.value(expr.b))


def _call(e: Emitter, expr: Call) -> Value:
    if is_index(e, expr):
        return index_value(e, e.index(expr))
    if expr.fn is Function.WORD:
        return word(e, expr)
    if expr.fn in DOTS:
        return dot(e, expr.fn, *(e.value(arg) for arg in expr.args))
    if expr.fn in (Function.BITS, Function.FROM_BITS) and expr.dtype.bits == 16:
        return _half_bits(e, expr.args[0], expr.dtype)
    return FUNCTIONS[expr.fn](e, expr.dtype, *(e.value(arg) for arg in expr.args))


def _half_bits(e: Emitter, x: Expr, dtype: DType) -> Value:
    """The bits of a 16-bit float, which is computed as float, or the float16 with given bits."""
    if dtype.is_float:
        return from_stored(e, bitcast(e, e.value(x), "half"), dtype)
    stored = to_stored(e, e.value(x), x.dtype)
    return stored if stored.element == "i16" else bitcast(e, stored, "i16")


def _select(e: Emitter, expr: Select) -> Value:
    """Emit a select; loads that may be out of bounds are guarded on the side not taken."""
    if is_index(e, expr):
        return index_value(e, e.index(expr))
    cond = e.value(expr.cond)
    if cond.text in ("true", "false"):
        return e.value(expr.then if cond.text == "true" else expr.other)
    with e.guarded(cond):
        then, is_zero_padded = _zero_padded(e, expr)
    if is_zero_padded:
        return then
    with e.guarded(cond, negated=True):
        other = e.value(expr.other)
    return choose(e, cond, then, other)


def _zero_padded(e: Emitter, expr: Select) -> tuple[Value, bool]:
    """Emit ``select(inside, load, 0)``: a guarded load reads zeros already, so it needs no select.

    This does not apply when lanes share one element but only some may read it: all of them would
    get it.
    """
    then = expr.then
    if not is_zero(expr.other) or not isinstance(then, Load):
        return e.value(then), False
    use = access(e, buffer_of(then), [e.index(index) for index in then.indices])
    value = load(e, use)
    each_lane = bool(value.lanes) or not e.guards[-1].cond.lanes
    return value, each_lane and not use.in_bounds and len(e.guards) == 1


def _cast(e: Emitter, expr: Cast) -> Value:
    return convert(e, e.value(expr.x), expr.x.dtype, expr.type)


def _load(e: Emitter, expr: Load) -> Value:
    in_block = load_transposed(e, buffer_of(expr), expr)
    if in_block is not None:
        return from_stored(e, in_block, expr.dtype)
    return load(e, access(e, buffer_of(expr), [e.index(index) for index in expr.indices]))


EXPRESSIONS: Mapping[type[Expr], Callable[[Any, Any], Value]] = {
    Const: _const,
    Var: _var,
    Axis: _var,
    SizeVar: _var,
    Binary: _binary,
    Compare: _compare,
    Call: _call,
    Select: _select,
    Cast: _cast,
    Load: _load,
    Reduce: refuse_reduction,
}
