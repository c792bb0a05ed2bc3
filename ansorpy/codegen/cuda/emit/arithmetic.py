"""Operators and elementwise functions in CUDA C.

Floats use IEEE division and square roots; products and sums may be contracted to ``fma``, and
nothing more.  Functions come from CUDA's math library (``expf`` errs by at most 2 units in the last
place), never from its fast variants.  Integers wrap around, and are computed as unsigned where C
would leave overflow undefined.
"""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.codegen.clike.code import ATOM, MULTIPLY, UNARY, Code
from ansorpy.codegen.clike.operators import (
    INFIX,
    WRAPPING,
    chosen,
    compared,
    converted,
    float_suffix,
    infix,
)
from ansorpy.codegen.cuda.emit.emitter import Emitter, register_type
from ansorpy.codegen.unsupported import undefined
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import BinaryOp, Function
from ansorpy.ir.operators import BITWISE, SHIFTS

__all__ = ["binary", "function"]

_EXTREMA = {BinaryOp.MAX: "maximum", BinaryOp.MIN: "minimum"}
_UNSIGNED = {DType.UINT16: "unsigned", DType.INT32: "unsigned", DType.INT64: "unsigned long long"}
"""In what to compute types whose results may overflow C's: products of uint16 are those of int."""


def binary(e: Emitter, op: BinaryOp, dtype: DType, a: Code, b: Code) -> Code:
    """``a op b`` on values of *dtype*."""
    if op in (BinaryOp.AND, BinaryOp.OR):
        return infix(op, a, b)
    return _float(e, op, dtype, a, b) if dtype.is_float else _integer(e, op, dtype, a, b)


def _float(e: Emitter, op: BinaryOp, dtype: DType, a: Code, b: Code) -> Code:
    kind = register_type(dtype)
    if op in INFIX:
        return infix(op, a, b)
    if op in _EXTREMA:
        return _extremum(e, op, kind, a, b)
    if op is BinaryOp.POW:
        return Code(f"pow{float_suffix(dtype)}({a.text}, {b.text})")
    e.need("float_division")
    name = "float_mod" if op is BinaryOp.FLOORMOD else "float_div"
    return Code(f"{name}<{kind}>({a.text}, {b.text})")


def _integer(e: Emitter, op: BinaryOp, dtype: DType, a: Code, b: Code) -> Code:
    kind = register_type(dtype)
    if op is BinaryOp.POW:
        raise undefined(op, dtype)
    if op in SHIFTS:
        e.need("shifts")
        name = "shift_left" if op is BinaryOp.SHL else "shift_right"
        return Code(f"{name}<{kind}>({a.text}, {b.text})")
    if op in BITWISE:
        return Code(f"({a.at(UNARY)} {op.value} {b.at(UNARY)})")
    if op in WRAPPING:
        unsigned = _UNSIGNED.get(dtype)
        if unsigned is None:
            return _cut(dtype, infix(op, a, b))
        sides = [converted(unsigned, x) for x in (a, b)]
        return converted(kind, infix(op, *sides))
    if op in _EXTREMA:
        return _extremum(e, op, kind, a, b)
    return _divided(e, op, dtype, a, b)


def _divided(e: Emitter, op: BinaryOp, dtype: DType, a: Code, b: Code) -> Code:
    """C's own quotient or remainder by a positive literal, if it rounds as *op* requires."""
    towards_zero = op is BinaryOp.DIV or not dtype.is_signed
    if towards_zero and b.text.rstrip("uUL").isdigit() and int(b.text.rstrip("uUL")):
        sign = "%" if op is BinaryOp.FLOORMOD else "/"
        text = f"{a.at(MULTIPLY)} {sign} {b.at(MULTIPLY + 1)}"
        return _cut(dtype, Code(text, MULTIPLY))
    e.need("division")
    names = ("rest", "quotient") if towards_zero else ("floor_mod", "floor_div")
    name = names[op is not BinaryOp.FLOORMOD]
    return Code(f"{name}<{register_type(dtype)}>({a.text}, {b.text})")


def _extremum(e: Emitter, op: BinaryOp, kind: str, a: Code, b: Code) -> Code:
    e.need("extrema")
    return Code(f"{_EXTREMA[op]}<{kind}>({a.text}, {b.text})")


def _cut(dtype: DType, x: Code) -> Code:
    """Convert *x*, which C computes as an int, to the width of *dtype*."""
    return converted(register_type(dtype), x) if dtype.bits < 32 else x


_LIBRARY = {
    Function.EXP: "exp", Function.LOG: "log", Function.SQRT: "sqrt", Function.RSQRT: "rsqrt",
    Function.TANH: "tanh", Function.ERF: "erf", Function.SIN: "sin", Function.COS: "cos",
    Function.FLOOR: "floor", Function.CEIL: "ceil", Function.ROUND: "rint",
}  # fmt: skip
_OF_INTEGERS_TOO = (Function.FLOOR, Function.CEIL, Function.ROUND)


def function(e: Emitter, fn: Function, dtype: DType, args: Sequence[Code]) -> Code:
    """*fn* of values of *dtype*.

    Raises:
        CodegenError: It is not defined on values of that type.
    """
    first = args[0]
    if fn is Function.NEG or fn is Function.ABS:
        return _signed(e, fn, dtype, first)
    if fn is Function.NOT:
        return Code(f"!{first.at(UNARY + 1)}", UNARY)
    if fn is Function.FMA:
        return _multiply_add(e, dtype, args)
    if fn in _LIBRARY:
        return _library(fn, dtype, first)
    return _word(e, fn, dtype, args)


def _library(fn: Function, dtype: DType, x: Code) -> Code:
    if not dtype.is_float:
        if fn in _OF_INTEGERS_TOO:
            return x
        raise undefined(fn, dtype)
    return Code(f"{_LIBRARY[fn]}{float_suffix(dtype)}({x.text})")


def _signed(e: Emitter, fn: Function, dtype: DType, x: Code) -> Code:
    if dtype.is_float:
        if fn is Function.NEG:
            return Code(f"-{x.at(UNARY + 1)}", UNARY)
        return Code(f"fabs{float_suffix(dtype)}({x.text})")
    zero = Code({DType.UINT32: "0u", DType.UINT64: "0ULL"}.get(dtype, "0"))
    negative = _integer(e, BinaryOp.SUB, dtype, zero, x)
    if fn is Function.NEG:
        return negative
    if not dtype.is_signed:
        return x
    return chosen(compared("<", x, Code("0")), negative, x)


def _multiply_add(e: Emitter, dtype: DType, args: Sequence[Code]) -> Code:
    if not dtype.is_float:
        product = _integer(e, BinaryOp.MUL, dtype, args[0], args[1])
        return _integer(e, BinaryOp.ADD, dtype, product, args[2])
    return Code(f"fma{float_suffix(dtype)}({', '.join(x.text for x in args)})")


_BITS = {
    DType.FLOAT32: "(unsigned)__float_as_int",
    DType.FLOAT64: "(unsigned long long)__double_as_longlong",
}
_FROM_BITS = {DType.UINT32: "__int_as_float", DType.UINT64: "__longlong_as_double"}


def _word(e: Emitter, fn: Function, dtype: DType, args: Sequence[Code]) -> Code:
    """Functions of the bits of values."""
    inside = ", ".join(x.text for x in args)
    if dtype.is_half:
        e.need(dtype.value)
        return Code(f"to_{dtype.value}({inside}).bits", ATOM)
    if dtype is DType.UINT16:
        e.need("float16")
        return Code(f"to_float(float16{{{inside}}})", ATOM)
    if fn is Function.BITS:
        return Code(f"{_BITS[dtype]}({inside})", UNARY)
    if fn is Function.FROM_BITS:
        return Code(f"{_FROM_BITS[dtype]}({inside})", ATOM)
    if fn is Function.SCALE:
        e.need("scaled")
        return Code(f"scaled({inside})")
    name = fn.value
    e.need(name)
    return Code(f"{name}({inside})")
