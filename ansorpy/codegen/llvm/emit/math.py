"""Emit elementwise functions, listed in :data:`FUNCTIONS`.

Approximated functions were expanded earlier (:mod:`ansorpy.codegen.passes.expand_functions`); a
function without a float64 approximation calls the C library lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ansorpy.codegen.llvm.emit.arithmetic import call, fma, number, op
from ansorpy.codegen.llvm.emit.conversions import bitcast
from ansorpy.codegen.llvm.emit.scaling import scale
from ansorpy.codegen.llvm.emit.text import Value
from ansorpy.codegen.unsupported import undefined
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Function

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emit.emitter import Emitter

__all__ = ["FUNCTIONS", "library_call"]


def _negate(e: Emitter, dtype: DType, x: Value) -> Value:
    if x.is_float:
        return e.text.value(x.element, x.lanes, f"fneg {x.type} {x.text}")
    return op(e, "sub", number(0, x), x)


def _not(e: Emitter, dtype: DType, x: Value) -> Value:
    if dtype is DType.BOOL:
        return e.negation(x)
    return op(e, "xor", x, number(-1, x))


def _absolute(e: Emitter, dtype: DType, x: Value) -> Value:
    if x.is_float:
        return call(e, "fabs", x)
    if not dtype.is_signed:
        return x
    return call(e, "smax", x, _negate(e, dtype, x))


def _rounding(name: str) -> Callable[[Emitter, DType, Value], Value]:
    def emit(e: Emitter, dtype: DType, x: Value) -> Value:
        return call(e, name, x) if x.is_float else x

    return emit


def _square_root(e: Emitter, dtype: DType, x: Value) -> Value:
    if not dtype.is_float:
        raise undefined(Function.SQRT, dtype)
    return call(e, "sqrt", x)


def _multiply_add(e: Emitter, dtype: DType, a: Value, b: Value, c: Value) -> Value:
    if a.is_float:
        return fma(e, a, b, c)
    return op(e, "add", op(e, "mul", a, b), c)


def _bits(e: Emitter, dtype: DType, x: Value) -> Value:
    return bitcast(e, x, "i32" if x.element == "float" else "i64")


def _from_bits(e: Emitter, dtype: DType, x: Value) -> Value:
    return bitcast(e, x, "float" if x.element == "i32" else "double")


def _scale(e: Emitter, dtype: DType, y: Value, n: Value) -> Value:
    return scale(e, y, n)


def _library(name: str) -> Callable[[Emitter, DType, Value], Value]:
    def emit(e: Emitter, dtype: DType, x: Value) -> Value:
        return library_call(e, name, x)

    return emit


def library_call(e: Emitter, name: str, *operands: Value) -> Value:
    """Call the C library's function *name* on doubles, once per lane."""
    operands = e.unified(*operands)
    lanes = operands[0].lanes
    e.module.declare(name, "double", ", ".join(["double"] * len(operands)))
    if not lanes:
        return e.text.value("double", 0, e.text.call("double", name, operands))
    total = Value("double", "poison", lanes)
    for lane in range(lanes):
        scalars = [
            e.text.value("double", 0, f"extractelement {x.typed}, i64 {lane}") for x in operands
        ]
        one = e.text.value("double", 0, e.text.call("double", name, scalars))
        placed = f"insertelement {total.typed}, {one.typed}, i64 {lane}"
        total = e.text.value("double", lanes, placed)
    return total


FUNCTIONS: Mapping[Function, Callable[..., Value]] = {
    Function.NEG: _negate,
    Function.NOT: _not,
    Function.ABS: _absolute,
    Function.SQRT: _square_root,
    Function.SIN: _library("sin"),
    Function.COS: _library("cos"),
    Function.FLOOR: _rounding("floor"),
    Function.CEIL: _rounding("ceil"),
    Function.ROUND: _rounding("roundeven"),
    Function.FMA: _multiply_add,
    Function.BITS: _bits,
    Function.FROM_BITS: _from_bits,
    Function.SCALE: _scale,
}
