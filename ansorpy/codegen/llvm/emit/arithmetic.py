"""Arithmetic on emitted values: floats, integers, conversions.

Sums and products of floats may be contracted.  ``max``/``min`` return NaN when either operand is
NaN, as numpy and ONNX do, and either one of two zeros.  Sums and products of lanes are combined in
any order.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from ansorpy.codegen.llvm.emit.conversions import bitcast, converted, from_stored, to_stored
from ansorpy.codegen.llvm.emit.module import mangled
from ansorpy.codegen.llvm.emit.text import Value, float_literal, register_type
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import BinaryOp, CompareOp, ReduceKind
from ansorpy.ir.operators import SHIFTS

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emit.emitter import Emitter

__all__ = [
    "FLOAT_BINARY", "call", "choose", "compare_values", "convert", "divided", "fma", "horizontal",
    "integer_binary", "number", "op",
]  # fmt: skip


def op(e: Emitter, name: str, a: Value, b: Value) -> Value:
    """Emit ``name a, b`` (``fadd``, ``and``, ``shl`` ...), with the lanes of the wider operand."""
    a, b = e.unified(a, b)
    flags = "contract " if name in ("fadd", "fsub", "fmul") else ""
    return e.text.value(a.element, a.lanes, f"{name} {flags}{a.type} {a.text}, {b.text}")


def call(e: Emitter, name: str, *operands: Value, flags: str = "") -> Value:
    """Call the overloaded intrinsic ``llvm.<name>`` on operands of one type."""
    operands = e.unified(*operands)
    first = operands[0]
    full = e.module.intrinsic(name, first.type, len(operands))
    return e.text.value(first.element, first.lanes, e.text.call(first.type, full, operands, flags))


def number(value: float, like: Value) -> Value:
    """A constant of the element type of *like*."""
    text = float_literal(value, like.element) if like.is_float else str(value)
    return Value(like.element, text, 0, 0)


def fma(e: Emitter, a: Value, b: Value, c: Value) -> Value:
    """``a * b + c``, rounded once where the target has the instruction."""
    return call(e, "fmuladd", a, b, c)


def choose(e: Emitter, cond: Value, then: Value, other: Value) -> Value:
    """``then`` where *cond* holds, else ``other``, lane by lane."""
    then, other = e.unified(then, other)
    if cond.lanes and not then.lanes:
        then, other = e.widened(then, cond.lanes), e.widened(other, cond.lanes)
    text = f"select {cond.typed}, {then.typed}, {other.typed}"
    return e.text.value(then.element, then.lanes, text)


def _extremum(name: str, wins: CompareOp) -> Callable[[Emitter, Value, Value], Value]:
    def emit(e: Emitter, a: Value, b: Value) -> Value:
        if _is_number(a) or _is_number(b):
            # One operand cannot be NaN, so the other may be returned when unordered: one
            # instruction on x86 (`vmaxps` returns its second operand then).
            known, other = e.unified(a, b) if _is_number(a) else e.unified(b, a)
            return choose(e, _compare_floats(e, wins, known, other), known, other)
        return call(e, name, a, b, flags="nsz ")

    return emit


def _is_number(value: Value) -> bool:
    """True for a literal; generated programs do not take the maximum of a NaN literal."""
    return value.text.startswith("0x") and not math.isnan(_literal(value))


def _literal(value: Value) -> float:
    found: float = struct.unpack(">d", bytes.fromhex(value.text[2:]))[0]
    return found


def _float_floormod(e: Emitter, a: Value, b: Value) -> Value:
    rest, opposed = _rest(e, a, b)
    return choose(e, opposed, op(e, "fadd", rest, b), call(e, "copysign", rest, b))


def _float_floordiv(e: Emitter, a: Value, b: Value) -> Value:
    rest, opposed = _rest(e, a, b)
    one, half, zero = (number(x, rest) for x in (1.0, 0.5, 0.0))
    near = op(e, "fdiv", op(e, "fsub", a, rest), b)
    near = choose(e, opposed, op(e, "fsub", near, one), near)
    whole = call(e, "floor", near)
    is_above = _compare_floats(e, CompareOp.GT, op(e, "fsub", near, whole), half)
    whole = choose(e, is_above, op(e, "fadd", whole, one), whole)
    ratio = op(e, "fdiv", a, b)
    by_zero = _compare_floats(e, CompareOp.EQ, b, zero)
    return choose(e, by_zero, ratio, call(e, "copysign", whole, ratio))


def _rest(e: Emitter, a: Value, b: Value) -> tuple[Value, Value]:
    """The exact remainder with the sign of *a*, and whether it needs correcting for *b*'s sign."""
    rest = op(e, "frem", a, b)
    zero = number(0.0, rest)
    signs = [_compare_floats(e, CompareOp.LT, x, zero) for x in (rest, b)]
    return rest, op(e, "and", op(e, "xor", *signs), _compare_floats(e, CompareOp.NE, rest, zero))


def _compare_floats(e: Emitter, which: CompareOp, a: Value, b: Value) -> Value:
    a, b = e.unified(a, b)
    return e.text.value(
        "i1", a.lanes, f"fcmp {_FLOAT_PREDICATE[which]} {a.type} {a.text}, {b.text}"
    )


FLOAT_BINARY: dict[BinaryOp, Callable[[Emitter, Value, Value], Value]] = {
    BinaryOp.ADD: lambda e, a, b: op(e, "fadd", a, b),
    BinaryOp.SUB: lambda e, a, b: op(e, "fsub", a, b),
    BinaryOp.MUL: lambda e, a, b: op(e, "fmul", a, b),
    BinaryOp.DIV: lambda e, a, b: op(e, "fdiv", a, b),
    BinaryOp.FLOORDIV: _float_floordiv,
    BinaryOp.FLOORMOD: _float_floormod,
    BinaryOp.MAX: _extremum("maximum", CompareOp.GT),
    BinaryOp.MIN: _extremum("minimum", CompareOp.LT),
}

_INTEGER = {
    BinaryOp.ADD: "add", BinaryOp.SUB: "sub", BinaryOp.MUL: "mul",
    BinaryOp.AND: "and", BinaryOp.OR: "or", BinaryOp.BIT_AND: "and", BinaryOp.BIT_OR: "or",
    BinaryOp.BIT_XOR: "xor",
}  # fmt: skip


def integer_binary(e: Emitter, which: BinaryOp, dtype: DType, a: Value, b: Value) -> Value:
    """Integer (and boolean) arithmetic, as :class:`BinaryOp` defines it."""
    if which in _INTEGER:
        return op(e, _INTEGER[which], a, b)
    if which in (BinaryOp.MAX, BinaryOp.MIN):
        return call(e, f"{_sign(dtype)}{which.value}", a, b)
    if which in SHIFTS:
        return _shifted(e, which, dtype, a, b)
    if _divides_all(dtype, b):
        return divided(e, which, dtype, a, b)
    trapping = _traps(e, dtype, b)
    found = divided(e, which, dtype, a, choose(e, trapping, number(1, b), b))
    if which is BinaryOp.FLOORMOD:
        return found  # by 1: there is no remainder
    return choose(e, trapping, op(e, "mul", a, b), found)


def _shifted(e: Emitter, which: BinaryOp, dtype: DType, a: Value, b: Value) -> Value:
    """A shift whose distance, if no literal, is tested: LLVM leaves large ones undefined."""
    fills = which is BinaryOp.SHR and dtype.is_signed
    name = "shl" if which is BinaryOp.SHL else "ashr" if fills else "lshr"
    last, zero = number(dtype.bits - 1, b), number(0, b)
    if b.text.lstrip("-").isdigit():
        if 0 <= int(b.text) < dtype.bits:
            return op(e, name, a, b)
        return op(e, name, a, last) if fills else op(e, "and", a, zero)
    inside = compare_values(e, CompareOp.LE, DType.UINT64, b, last)
    if fills:
        return op(e, name, a, choose(e, inside, b, last))
    return choose(e, inside, op(e, name, a, choose(e, inside, b, zero)), zero)


def _divides_all(dtype: DType, divisor: Value) -> bool:
    """True for a literal by which every number of the type can be divided without overflow."""
    if not divisor.text.lstrip("-").isdigit():
        return False
    return int(divisor.text) not in ((0, -1) if dtype.is_signed else (0,))


def _traps(e: Emitter, dtype: DType, divisor: Value) -> Value:
    """True if the divisor is 0 or, in a signed type, -1, for which a division may trap."""
    if not dtype.is_signed:
        return compare_values(e, CompareOp.EQ, dtype, divisor, number(0, divisor))
    above = op(e, "add", divisor, number(1, divisor))
    return compare_values(e, CompareOp.LT, DType.UINT64, above, number(2, divisor))


def divided(e: Emitter, which: BinaryOp, dtype: DType, a: Value, b: Value) -> Value:
    """A quotient or remainder whose divisor is neither 0 nor, in a signed type, -1."""
    sign = _sign(dtype)
    if which is BinaryOp.DIV or not dtype.is_signed:
        return op(e, f"{sign}rem" if which is BinaryOp.FLOORMOD else f"{sign}div", a, b)
    quotient, remainder = op(e, "sdiv", a, b), op(e, "srem", a, b)
    zero = number(0, a)
    differ = compare_values(e, CompareOp.LT, DType.INT64, op(e, "xor", remainder, b), zero)
    inexact = compare_values(e, CompareOp.NE, DType.INT64, remainder, zero)
    wrong = op(e, "and", differ, inexact)
    if which is BinaryOp.FLOORMOD:
        return choose(e, wrong, op(e, "add", remainder, b), remainder)
    return choose(e, wrong, op(e, "sub", quotient, number(1, a)), quotient)


_FLOAT_PREDICATE = {
    CompareOp.LT: "olt", CompareOp.LE: "ole", CompareOp.GT: "ogt",
    CompareOp.GE: "oge", CompareOp.EQ: "oeq", CompareOp.NE: "une",
}  # fmt: skip
_ORDER = {CompareOp.LT: "lt", CompareOp.LE: "le", CompareOp.GT: "gt", CompareOp.GE: "ge"}


def compare_values(e: Emitter, which: CompareOp, dtype: DType, a: Value, b: Value) -> Value:
    """``a which b`` as ``i1`` per lane; comparisons with NaN are false, except ``!=``."""
    if a.is_float:
        return _compare_floats(e, which, a, b)
    a, b = e.unified(a, b)
    order = _ORDER.get(which)
    predicate = which.name.lower() if order is None else _sign(dtype) + order
    return e.text.value("i1", a.lanes, f"icmp {predicate} {a.type} {a.text}, {b.text}")


def _sign(dtype: DType) -> str:
    return "s" if dtype.is_signed else "u"


def convert(e: Emitter, value: Value, source: DType, wanted: DType) -> Value:
    """Convert *value* from *source* to *wanted*, as :class:`ansorpy.ir.expr.Cast` defines it."""
    result = register_type(wanted)
    if wanted is DType.BOOL:
        return compare_values(e, CompareOp.NE, source, value, number(0, value))
    if wanted.is_half and source is not wanted:
        passes = source.passes_float32(wanted)
        near = _cast(e, value, source, "float") if passes else _to_odd(e, value, source)
        return _rounded(e, near, wanted)
    if value.is_float and wanted.is_int:
        wide = wanted.of_floats
        return _cast(e, _nearest_integer(e, value, wide), wide, result)
    return _cast(e, value, source, result)


def _nearest_integer(e: Emitter, value: Value, wanted: DType) -> Value:
    """Round a float towards zero and saturate to the range of *wanted*; NaN becomes 0.

    ``llvm.fptosi.sat`` is not used because LLVM 22 scalarises it.
    """
    signed = wanted.is_signed
    end = 1 << (wanted.bits - signed)
    least, beyond = number(-end if signed else 0, value), number(end, value)
    raised = choose(e, compare_values(e, CompareOp.GT, wanted, value, least), value, least)
    whole = converted(e, f"fpto{_sign(wanted)}i", raised, register_type(wanted))
    zero, most = number(0, whole), number(end - 1, whole)
    inside = choose(e, compare_values(e, CompareOp.LT, wanted, value, beyond), whole, zero)
    return choose(e, compare_values(e, CompareOp.GE, wanted, value, beyond), most, inside)


def _cast(e: Emitter, value: Value, source: DType, result: str) -> Value:
    """Convert *value* to register type *result*; float to integer is not handled here."""
    if value.element == result:
        return value
    return converted(e, _cast_name(value, source, result), value, result)


def _cast_name(value: Value, source: DType, result: str) -> str:
    to_float = result in ("float", "double")
    if value.is_float and to_float:
        return "fpext" if result == "double" else "fptrunc"
    signed = source.is_signed and source is not DType.BOOL
    if to_float:
        return "sitofp" if signed else "uitofp"
    if int(result[1:]) < int(value.element[1:]):
        return "trunc"
    return "sext" if signed else "zext"


def _to_odd(e: Emitter, value: Value, source: DType) -> Value:
    """Round *value* to odd as a float32: rounding that again equals rounding *value* once.

    Rounding to odd is rounding towards zero, with the last bit set if the result is inexact.
    """
    if source.bits == 64 and source.is_int:
        value = _in_53_bits(e, value, source)
    exact = _cast(e, value, source, "double")
    near = _cast(e, exact, DType.FLOAT64, "float")
    found = _cast(e, near, DType.FLOAT32, "double")
    sizes = call(e, "fabs", found), call(e, "fabs", exact)
    is_beyond = _compare_floats(e, CompareOp.GT, *sizes)
    is_inexact = _compare_floats(e, CompareOp.NE, found, exact)
    cut = op(e, "sub", bitcast(e, near, "i32"), _cast(e, is_beyond, DType.BOOL, "i32"))
    return bitcast(e, op(e, "or", cut, _cast(e, is_inexact, DType.BOOL, "i32")), "float")


def _in_53_bits(e: Emitter, value: Value, dtype: DType) -> Value:
    """Reduce a 64-bit integer to 53 bits: in large numbers, bit 11 stands for the lower bits."""
    step, zero = 1 << 11, number(0, value)
    low = op(e, "and", value, number(step - 1, value))
    is_odd = compare_values(e, CompareOp.NE, dtype, low, zero)
    high = op(e, "and", value, number(-step, value))
    high = op(e, "or", high, choose(e, is_odd, number(step, value), zero))
    end = 1 << 52
    moved = op(e, "add", value, number(end, value)) if dtype.is_signed else value
    limit = number(2 * end, value)
    is_small = compare_values(e, CompareOp.LT, DType.UINT64, moved, limit)
    return choose(e, is_small, value, high)


def _rounded(e: Emitter, value: Value, dtype: DType) -> Value:
    """A float rounded to the precision of a 16-bit float, still computed as float."""
    return from_stored(e, to_stored(e, value, dtype), dtype)


_HORIZONTAL = {
    ReduceKind.SUM: "fadd", ReduceKind.PROD: "fmul",
    ReduceKind.MAX: "fmaximum", ReduceKind.MIN: "fminimum",
}  # fmt: skip


def horizontal(e: Emitter, kind: ReduceKind, dtype: DType, value: Value) -> Value:
    """Combine all lanes of *value* into a scalar, in tree order."""
    element = value.element
    suffix = mangled(value.type)
    if not value.is_float:
        sign = _sign(dtype)
        names = {ReduceKind.SUM: "add", ReduceKind.PROD: "mul"}
        name = names.get(kind, f"{sign}{kind.value}")
        full = e.module.declare(f"llvm.vector.reduce.{name}.{suffix}", element, value.type)
        return e.text.value(element, 0, f"call {element} @{full}({value.typed})")
    full = f"llvm.vector.reduce.{_HORIZONTAL[kind]}.{suffix}"
    if kind in (ReduceKind.MAX, ReduceKind.MIN):
        e.module.declare(full, element, value.type)
        return e.text.value(element, 0, f"call {element} @{full}({value.typed})")
    start = float_literal(float(kind.identity(dtype)), element)
    if kind is ReduceKind.SUM:
        start = float_literal(-0.0, element)
    e.module.declare(full, element, f"{element}, {value.type}")
    return e.text.value(
        element, 0, f"call reassoc {element} @{full}({element} {start}, {value.typed})"
    )
