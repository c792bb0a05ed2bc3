"""Elementwise functions, listed in :data:`FUNCTIONS`.

float32 (and 16-bit floats, computed as float32) is vector code throughout; float64 calls the C
library's functions lane by lane where the hardware has no instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ansorpy.codegen.llvm import transcendental
from ansorpy.codegen.llvm.arithmetic import call, fma, number, op
from ansorpy.codegen.llvm.text import Value
from ansorpy.errors import CodegenError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Function

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emitter import Emitter

__all__ = ["FUNCTIONS", "power"]


def _negate(e: Emitter, dtype: DType, x: Value) -> Value:
    if x.is_float:
        return e.text.value(x.element, x.lanes, f"fneg {x.type} {x.text}")
    return op(e, "sub", Value(x.element, "0", 0, 0), x)


def _not(e: Emitter, dtype: DType, x: Value) -> Value:
    if dtype is DType.BOOL:
        return e.negation(x)
    return op(e, "xor", x, Value(x.element, "-1", 0, 0))


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
    _require_float(Function.SQRT, dtype)
    return call(e, "sqrt", x)


def _reciprocal_root(e: Emitter, dtype: DType, x: Value) -> Value:
    """1 / sqrt(x), both correctly rounded (at most 1.5 ULP together)."""
    _require_float(Function.RSQRT, dtype)
    return op(e, "fdiv", number(1.0, x), call(e, "sqrt", x))


def _multiply_add(e: Emitter, dtype: DType, a: Value, b: Value, c: Value) -> Value:
    if a.is_float:
        return fma(e, a, b, c)
    return op(e, "add", op(e, "mul", a, b), c)


def _elementary(
    fn: Function, single: Callable[[Emitter, Value], Value]
) -> Callable[[Emitter, DType, Value], Value]:
    """*single* for float, the C library's function of the same name for double."""

    def emit(e: Emitter, dtype: DType, x: Value) -> Value:
        _require_float(fn, dtype)
        return single(e, x) if x.element == "float" else library_call(e, fn.value, x)

    return emit


def _require_float(fn: Function, dtype: DType) -> None:
    if not dtype.is_float:
        raise CodegenError(
            f"{fn.value} of {dtype.value} values is not defined",
            hint="convert the operand to a float type first",
        )


def library_call(e: Emitter, name: str, *operands: Value) -> Value:
    """The double function *name* of the C library, one call a lane."""
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


def power(e: Emitter, a: Value, b: Value, dtype: DType) -> Value:
    """``a ** b``; a few constant exponents are multiplications and roots.

    Raises:
        CodegenError: Integers, other than with a small constant exponent.
    """
    special = _constant_power(e, a, b)
    if special is not None:
        return special
    _require_float_power(dtype)
    if a.element == "double":
        return library_call(e, "pow", a, b)
    return transcendental.power(e, a, b)


def _require_float_power(dtype: DType) -> None:
    if not dtype.is_float:
        raise CodegenError(
            f"a power of {dtype.value} values with a variable exponent is not defined",
            hint="convert both operands to a float type first",
        )


def _constant_power(e: Emitter, a: Value, b: Value) -> Value | None:
    multiply = "fmul" if a.is_float else "mul"
    if b.text == number(2.0, a).text if a.is_float else b.text == "2":
        return op(e, multiply, a, a)
    if b.text == number(3.0, a).text if a.is_float else b.text == "3":
        return op(e, multiply, op(e, multiply, a, a), a)
    if b.text == number(1.0, a).text if a.is_float else b.text == "1":
        return a
    if a.is_float and b.text == number(-1.0, a).text:
        return op(e, "fdiv", number(1.0, a), a)
    return None


FUNCTIONS: Mapping[Function, Callable[..., Value]] = {
    Function.NEG: _negate,
    Function.NOT: _not,
    Function.ABS: _absolute,
    Function.EXP: _elementary(Function.EXP, transcendental.exp),
    Function.LOG: _elementary(Function.LOG, transcendental.log),
    Function.SQRT: _square_root,
    Function.RSQRT: _reciprocal_root,
    Function.TANH: _elementary(Function.TANH, transcendental.tanh),
    Function.ERF: _elementary(Function.ERF, transcendental.erf),
    Function.SIN: _elementary(Function.SIN, transcendental.sin),
    Function.COS: _elementary(Function.COS, transcendental.cos),
    Function.FLOOR: _rounding("floor"),
    Function.CEIL: _rounding("ceil"),
    Function.ROUND: _rounding("roundeven"),
    Function.FMA: _multiply_add,
}
