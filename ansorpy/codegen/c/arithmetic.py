"""Operators and elementwise functions in C.

Integers wrap around: they are computed as unsigned where C leaves overflow undefined.  Elementary
functions are generated too (:mod:`.functions`); the only functions called from ``math.h`` are
``fabs sqrt floor ceil rint fmod copysign``, and ``sin cos pow`` of doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ansorpy.codegen.c.emitter import Emitter
from ansorpy.codegen.c.prelude import elementary_name
from ansorpy.codegen.c.types import computed_type, register_type, short_name
from ansorpy.codegen.clike.code import AND, MULTIPLY, OR, UNARY, Code
from ansorpy.codegen.clike.operators import INFIX, WRAPPING, converted, float_suffix, infix
from ansorpy.codegen.unsupported import undefined
from ansorpy.ir.dots import DOTS
from ansorpy.ir.dtypes import DType
from ansorpy.ir.elementary.table import APPROXIMATIONS, ELEMENTARY
from ansorpy.ir.expr import BinaryOp, Function
from ansorpy.ir.operators import BITWISE, SHIFTS

__all__ = ["as_type", "binary", "function", "helper_call"]

_QUOTIENTS = {
    BinaryOp.DIV: "quotient", BinaryOp.FLOORDIV: "floor_div", BinaryOp.FLOORMOD: "floor_mod",
}  # fmt: skip
_TOWARDS_ZERO = {BinaryOp.FLOORDIV: "quotient", BinaryOp.FLOORMOD: "rest"}
_OF_BOOLEANS = {BinaryOp.MIN: BinaryOp.AND, BinaryOp.MAX: BinaryOp.OR}


def binary(e: Emitter, op: BinaryOp, dtype: DType, a: Code, b: Code, *, wraps: bool = True) -> Code:
    """``a op b`` on values of *dtype*; if not *wraps*, no sum or product overflows the type."""
    if dtype is DType.BOOL:
        return _logic(_OF_BOOLEANS.get(op, op), a, b)
    if dtype.is_float:
        return _float(e, op, dtype, a, b)
    if op in SHIFTS:
        return _shifted(e, op, dtype, a, b)
    if op in BITWISE:
        return Code(f"({a.at(UNARY)} {op.value} {b.at(UNARY)})")
    if op in WRAPPING:
        return _wrapping(op, dtype, a, b) if wraps else infix(op, a, b)
    return _integer(e, op, dtype, a, b)


def helper_call(e: Emitter, name: str, *arguments: Code) -> Code:
    """Call a function of the prelude."""
    e.need(name)
    return Code(f"{name}({', '.join(x.text for x in arguments)})")


def as_type(x: Code, kind: str) -> Code:
    """*x* converted to the C type *kind*."""
    is_cast = x.level == UNARY and x.text.startswith("(int")
    if is_cast and kind == f"u{x.text[1 : x.text.index(')')]}":
        return Code(f"(u{x.text[1:]}", UNARY)
    return converted(kind, x)


def _logic(op: BinaryOp, a: Code, b: Code) -> Code:
    """Combine conditions; ``&&`` inside ``||`` gets parentheses, or compilers warn."""
    sides = [Code(f"({x.text})") if x.level in (AND, OR) and x.level != INFIX[op][1] else x
             for x in (a, b)]  # fmt: skip
    return infix(op, *sides)


def _float(e: Emitter, op: BinaryOp, dtype: DType, a: Code, b: Code) -> Code:
    if op in INFIX:
        return infix(op, a, b)
    if op is BinaryOp.POW:
        return _elementary(e, op, dtype, a, b)
    if op in _QUOTIENTS:
        return helper_call(e, f"{_QUOTIENTS[op]}_{short_name(computed_type(dtype))}", a, b)
    if _is_literal(b):
        a, b = b, a  # the helper tests whether its first operand is NaN, which no literal is
    return helper_call(e, f"{op.value}_{short_name(computed_type(dtype))}", a, b)


def _is_literal(x: Code) -> bool:
    word = x.text.lstrip("-")
    return word[:1].isdigit() or word == "INFINITY"


def _integer(e: Emitter, op: BinaryOp, dtype: DType, a: Code, b: Code) -> Code:
    if op is BinaryOp.POW:
        raise undefined(op, dtype)
    if op not in _QUOTIENTS:
        return helper_call(e, f"{op.value}_{short_name(computed_type(dtype))}", a, b)
    if op is BinaryOp.DIV or not dtype.is_signed:
        return _divided(e, op, dtype, a, b)
    return _cut(dtype, helper_call(e, f"{_QUOTIENTS[op]}_{short_name(computed_type(dtype))}", a, b))


def _wrapping(op: BinaryOp, dtype: DType, a: Code, b: Code) -> Code:
    """Compute ``a op b`` in an unsigned type where the result may overflow C's signed type."""
    if dtype in (DType.UINT32, DType.UINT64):
        return infix(op, a, b)
    if dtype.bits < 32 and (dtype is not DType.UINT16 or op is not BinaryOp.MUL):
        return _cut(dtype, infix(op, a, b))
    sides = [as_type(x, f"uint{max(32, dtype.bits)}_t") for x in (a, b)]
    return as_type(infix(op, *sides), register_type(dtype))


def _shifted(e: Emitter, op: BinaryOp, dtype: DType, a: Code, b: Code) -> Code:
    """C's own shift by a literal that leaves bits, else a helper; left ones are unsigned."""
    digits = b.text.rstrip("u")
    if not digits.isdigit() or int(digits) >= dtype.bits:
        name = "shl" if op is BinaryOp.SHL else "shr"
        return _cut(dtype, helper_call(e, f"{name}_{short_name(computed_type(dtype))}", a, b))
    if op is BinaryOp.SHR:
        return Code(f"({a.at(UNARY)} >> {digits})")
    wide = as_type(a, f"uint{max(32, dtype.bits)}_t")
    return as_type(Code(f"({wide.at(UNARY)} << {digits})"), register_type(dtype))


def _divided(e: Emitter, op: BinaryOp, dtype: DType, a: Code, b: Code) -> Code:
    """Divide, rounding towards zero: C's own division by a positive literal, else a helper."""
    if b.text.rstrip("u").isdigit() and int(b.text.rstrip("u")):
        sign = "%" if op is BinaryOp.FLOORMOD else "/"
        return _cut(dtype, Code(f"{a.at(MULTIPLY)} {sign} {b.at(MULTIPLY + 1)}", MULTIPLY))
    name = _TOWARDS_ZERO.get(op, "quotient")
    return _cut(dtype, helper_call(e, f"{name}_{short_name(computed_type(dtype))}", a, b))


def _cut(dtype: DType, x: Code) -> Code:
    """Convert *x*, which C computes as an int, to the width of *dtype*."""
    return as_type(x, register_type(dtype)) if dtype.bits < 32 else x


def function(e: Emitter, fn: Function, dtype: DType, args: Sequence[Code]) -> Code:
    """*fn* of values of *dtype*.

    Raises:
        CodegenError: It is not defined on values of that type.
    """
    if fn in ELEMENTARY:
        return _elementary(e, fn, dtype, *args)
    return _FUNCTIONS[fn](e, dtype, *args)


def _elementary(e: Emitter, fn: Function | BinaryOp, dtype: DType, *args: Code) -> Code:
    """Call a generated function, or that of ``math.h`` where we have no approximation."""
    if not dtype.is_float:
        raise undefined(fn, dtype)
    computed = computed_type(dtype)
    if (fn, computed) in APPROXIMATIONS:
        return helper_call(e, elementary_name(fn, computed), *args)
    return Code(f"{fn.name.lower()}({', '.join(x.text for x in args)})")


def _negative(e: Emitter, dtype: DType, x: Code) -> Code:
    if dtype.is_float:
        return Code(f"-{x.at(UNARY + 1)}", UNARY)
    if dtype.bits < 32:
        return _cut(dtype, Code(f"-{x.at(UNARY + 1)}", UNARY))
    return _wrapping(BinaryOp.SUB, dtype, Code("0" if dtype.is_signed else "0u"), x)


def _absolute(e: Emitter, dtype: DType, x: Code) -> Code:
    if dtype.is_float:
        return Code(f"fabs{float_suffix(dtype)}({x.text})")
    if not dtype.is_signed:
        return x
    return _cut(dtype, helper_call(e, f"abs_{short_name(computed_type(dtype))}", x))


def _not(e: Emitter, dtype: DType, x: Code) -> Code:
    return Code(f"!{x.at(UNARY + 1)}", UNARY)


def _multiply_add(e: Emitter, dtype: DType, a: Code, b: Code, c: Code) -> Code:
    """Emit ``a * b + c``, which compilers may contract; calling ``fma`` is slow on machines without
    the instruction."""
    return binary(e, BinaryOp.ADD, dtype, binary(e, BinaryOp.MUL, dtype, a, b), c)


def _library(name: str) -> Callable[[Emitter, DType, Code], Code]:
    def emit(e: Emitter, dtype: DType, x: Code) -> Code:
        if dtype.is_float:
            return Code(f"{name}{float_suffix(dtype)}({x.text})")
        if name == "sqrt":
            raise undefined(Function.SQRT, dtype)
        return x

    return emit


def _bits(e: Emitter, dtype: DType, x: Code) -> Code:
    if dtype.is_half:
        return helper_call(e, f"to_{short_name(dtype)}", x)
    return helper_call(e, f"bits_of_{short_name(dtype)}", x)


def _from_bits(e: Emitter, dtype: DType, x: Code) -> Code:
    if dtype is DType.UINT16:
        return helper_call(e, "from_f16", x)
    return helper_call(e, f"from_bits_f{dtype.bits}", x)


def _scale(e: Emitter, dtype: DType, y: Code, n: Code) -> Code:
    return helper_call(e, f"scale_{short_name(dtype)}", y, n)


def _word(e: Emitter, dtype: DType, *parts: Code) -> Code:
    return helper_call(e, "word_8" if len(parts) == 4 else "word_bf16", *parts)


def _dot(fn: Function) -> Callable[[Emitter, DType, Code, Code], Code]:
    return lambda e, dtype, a, b: helper_call(e, fn.value, a, b)


_FUNCTIONS: Mapping[Function, Callable[..., Code]] = {
    Function.NEG: _negative, Function.NOT: _not, Function.ABS: _absolute,
    Function.SQRT: _library("sqrt"),
    Function.FLOOR: _library("floor"), Function.CEIL: _library("ceil"),
    Function.ROUND: _library("rint"), Function.FMA: _multiply_add, Function.BITS: _bits,
    Function.FROM_BITS: _from_bits, Function.SCALE: _scale, Function.WORD: _word,
    **{fn: _dot(fn) for fn in DOTS},
}  # fmt: skip
