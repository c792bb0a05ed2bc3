"""Convert values between memory and registers: bools are bytes in memory, 16-bit floats widen.

float16 is converted by integer arithmetic where the machine has no instruction for it: LLVM would
call a function for each lane, of a library that need not be there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansorpy.codegen.llvm.emit.text import Value, float_literal, type_of
from ansorpy.ir.dtypes import DType

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emit.emitter import Emitter

__all__ = ["bitcast", "converted", "from_stored", "to_stored"]


def converted(e: Emitter, how: str, value: Value, element: str) -> Value:
    """Convert to another element type by the instruction *how* (``zext``, ``fptrunc`` ...)."""
    wide = type_of(element, value.lanes)
    return e.text.value(element, value.lanes, f"{how} {value.typed} to {wide}")


def bitcast(e: Emitter, value: Value, element: str) -> Value:
    """Reinterpret the bits as another element type of the same width."""
    return converted(e, "bitcast", value, element)


def from_stored(e: Emitter, value: Value, dtype: DType) -> Value:
    """Convert a value from its form in memory to the type it is computed in."""
    lanes = value.lanes
    if dtype is DType.BOOL:
        zero = "zeroinitializer" if lanes else "0"
        return e.text.value("i1", lanes, f"icmp ne {value.type} {value.text}, {zero}")
    if not dtype.is_half:
        return value
    found = _widened_half(e, value) if dtype is DType.FLOAT16 else _widened_bfloat16(e, value)
    e.stored[found.text, dtype] = value
    return found


def to_stored(e: Emitter, value: Value, dtype: DType) -> Value:
    """Convert a computed value to its form in memory (16-bit floats round to nearest even).

    A value that was loaded as that type, or was already rounded to it, is not rounded again.
    """
    if dtype is DType.BOOL:
        return converted(e, "zext", value, "i8")
    if not dtype.is_half:
        return value
    known = e.stored.get((value.text, dtype))
    if known is not None:
        return known
    if dtype is DType.BFLOAT16:
        return _to_bfloat16(e, value)
    if not _has_instructions(e):
        return _to_float16(e, value)
    return converted(e, "fptrunc", value, "half")


def _has_instructions(e: Emitter) -> bool:
    """Whether float16 is converted by instructions."""
    arch = e.module.target.triple.split("-")[0]
    return arch in ("aarch64", "arm64") or "f16c" in e.module.target.feature_set


class _Bits:
    """Arithmetic on the bits of float32 numbers, in *lanes* lanes."""

    def __init__(self, e: Emitter, lanes: int) -> None:
        self._text, self._lanes = e.text, lanes
        self.type = type_of("i32", lanes)

    def value(self, name: str) -> Value:
        return Value("i32", name, self._lanes)

    def op(self, what: str, a: str, b: str | int) -> str:
        return self._text.define(f"{what} {self.type} {a}, {self._operand(b)}")

    def choose(self, order: str, a: str, limit: int, then: str | int, other: str) -> str:
        """*then* where *a* is less than (``ult``) or at least (``uge``) *limit*, else *other*."""
        test = f"icmp {order} {self.type} {a}, {self._operand(limit)}"
        return self.select(self._text.value("i1", self._lanes, test), then, other)

    def select(self, holds: Value, then: str | int, other: str) -> str:
        sides = f"{self.type} {self._operand(then)}, {self.type} {other}"
        return self._text.define(f"select {holds.typed}, {sides}")

    def _operand(self, x: str | int) -> str:
        return x if isinstance(x, str) else _repeat(self._lanes, "i32", x)


def _repeat(lanes: int, element: str, value: int | str) -> str:
    return f"splat ({element} {value})" if lanes else str(value)


def _widened_half(e: Emitter, value: Value) -> Value:
    lanes = value.lanes
    if _has_instructions(e):
        return converted(e, "fpext", value, "float")
    b = _Bits(e, lanes)
    raw = converted(e, "zext", bitcast(e, value, "i16"), "i32").text
    size = b.op("and", raw, 0x7FFF)
    sign = b.op("shl", b.op("and", raw, 0x8000), 16)
    normal = b.op("add", b.op("shl", size, 13), 0x38000000)
    counted = converted(e, "sitofp", b.value(size), "float")
    unit = _repeat(lanes, "float", float_literal(2.0**-24, "float"))
    small = e.text.value("float", lanes, f"fmul {counted.typed}, {unit}")
    found = b.choose("ult", size, 0x400, bitcast(e, small, "i32").text, normal)
    found = b.choose("uge", size, 0x7C00, b.op("add", normal, 0x38000000), found)
    return bitcast(e, b.value(b.op("or", sign, found)), "float")


def _widened_bfloat16(e: Emitter, value: Value) -> Value:
    b = _Bits(e, value.lanes)
    raw = converted(e, "zext", value, "i32").text
    return bitcast(e, b.value(b.op("shl", raw, 16)), "float")


def _to_float16(e: Emitter, value: Value) -> Value:
    """Round to nearest even on the bits; a NaN stays a NaN and keeps its sign."""
    b = _Bits(e, value.lanes)
    raw = bitcast(e, value, "i32").text
    size = b.op("and", raw, 0x7FFFFFFF)
    sign = b.op("and", b.op("lshr", raw, 16), 0x8000)
    odd = b.op("and", b.op("lshr", size, 13), 1)
    normal = b.op("lshr", b.op("add", b.op("add", size, odd), 0xFFF - 0x38000000), 13)
    # The sum has the unit of the smallest float16 numbers, to which it is rounded.
    half = _repeat(value.lanes, "float", float_literal(0.5, "float"))
    real = bitcast(e, b.value(size), "float")
    total = e.text.value("float", value.lanes, f"fadd {real.typed}, {half}")
    small = b.op("sub", bitcast(e, total, "i32").text, 0x3F000000)
    found = b.choose("ult", size, 0x38800000, small, normal)
    found = b.choose("uge", size, 0x47800000, 0x7C00, found)
    found = b.choose("uge", size, 0x7F800001, 0x7E00, found)
    bits = converted(e, "trunc", b.value(b.op("or", sign, found)), "i16")
    return bitcast(e, bits, "half")


def _to_bfloat16(e: Emitter, value: Value) -> Value:
    """Round to nearest even on the bits; a NaN stays a NaN and keeps its sign."""
    b = _Bits(e, value.lanes)
    raw = bitcast(e, value, "i32").text
    odd = b.op("and", b.op("lshr", raw, 16), 1)
    rounded = b.op("add", raw, b.op("add", odd, 0x7FFF))
    quiet = b.op("or", raw, 0x400000)
    unordered = f"fcmp uno {value.type} {value.text}, {value.text}"
    chosen = b.select(e.text.value("i1", value.lanes, unordered), quiet, rounded)
    return converted(e, "trunc", b.value(b.op("lshr", chosen, 16)), "i16")
