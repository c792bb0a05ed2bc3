"""Multiply by powers of two: one AVX-512 instruction, or arithmetic on the exponent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansorpy.codegen.llvm.emit.arithmetic import number, op
from ansorpy.codegen.llvm.emit.conversions import bitcast
from ansorpy.codegen.llvm.emit.text import Value
from ansorpy.ir.dtypes import DType
from ansorpy.ir.elementary.parts import FORMATS

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emit.emitter import Emitter

__all__ = ["scale"]


def scale(e: Emitter, y: Value, n: Value) -> Value:
    """``y * 2**n``, rounded once; *n* holds integers, at most twice the largest exponent."""
    y, n = e.unified(y, n)
    bits = y.lanes * (32 if y.element == "float" else 64)
    if bits in _FORMS and {"avx512f", "avx512vl"} <= e.module.target.feature_set:
        return _at_once(e, bits, y, n)
    return _in_two_steps(e, y, n)


_FORMS = (128, 256, 512)


def _at_once(e: Emitter, bits: int, y: Value, n: Value) -> Value:
    """Emit AVX-512 ``vscalef``; the 512-bit form's last operand selects the current rounding."""
    kind = "ps" if y.element == "float" else "pd"
    mask = f"i{max(8, y.lanes)}"
    rounding = (", i32", ", i32 4") if bits == 512 else ("", "")
    kinds = f"{y.type}, {y.type}, {y.type}, {mask}{rounding[0]}"
    name = e.module.declare(f"llvm.x86.avx512.mask.scalef.{kind}.{bits}", y.type, kinds)
    operands = f"{y.typed}, {n.typed}, {y.type} zeroinitializer, {mask} -1{rounding[1]}"
    return e.text.value(y.element, y.lanes, f"call {y.type} @{name}({operands})")


def _in_two_steps(e: Emitter, y: Value, n: Value) -> Value:
    """Scale by half of *n*, then by the remainder: only the last product can round or overflow."""
    form = FORMATS[DType.FLOAT32 if y.element == "float" else DType.FLOAT64]
    element = "i32" if y.element == "float" else "i64"

    def power_of_two(exponent: Value) -> Value:
        biased = op(e, "add", exponent, number(form.bias, exponent))
        return bitcast(e, op(e, "shl", biased, number(form.fraction, biased)), y.element)

    shifted = bitcast(e, op(e, "fadd", n, number(form.rounder, n)), element)
    zero = (form.fraction + form.bias) << form.fraction | 1 << (form.fraction - 1)
    whole = op(e, "sub", shifted, number(zero, shifted))
    half = op(e, "ashr", whole, number(1, whole))
    y = op(e, "fmul", y, power_of_two(half))
    return op(e, "fmul", y, power_of_two(op(e, "sub", whole, half)))
