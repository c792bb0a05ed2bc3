"""Convert values between memory and registers: bools are bytes in memory, 16-bit floats widen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansorpy.codegen.llvm.emit.text import Value
from ansorpy.ir.dtypes import DType

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emit.emitter import Emitter

__all__ = ["bitcast", "from_stored", "to_stored"]


def bitcast(e: Emitter, value: Value, element: str) -> Value:
    """Reinterpret the bits as another element type of the same width."""
    wide = Value(element, "", value.lanes).type
    return e.text.value(element, value.lanes, f"bitcast {value.typed} to {wide}")


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


def _widened_half(e: Emitter, value: Value) -> Value:
    wide = Value("float", "", value.lanes).type
    return e.text.value("float", value.lanes, f"fpext {value.typed} to {wide}")


def _widened_bfloat16(e: Emitter, value: Value) -> Value:
    lanes = value.lanes
    bits = Value("i32", "", lanes).type
    wide_bits = e.text.define(f"zext {value.typed} to {bits}")
    high = e.text.value("i32", lanes, f"shl {bits} {wide_bits}, {_repeat(lanes, 'i32', 16)}")
    wide = Value("float", "", lanes).type
    return e.text.value("float", lanes, f"bitcast {high.typed} to {wide}")


def to_stored(e: Emitter, value: Value, dtype: DType) -> Value:
    """Convert a computed value to its form in memory (16-bit floats round to nearest even).

    A value that was loaded as that type, or was already rounded to it, is not rounded again.
    """
    lanes = value.lanes
    if dtype is DType.BOOL:
        byte = Value("i8", "", lanes).type
        return e.text.value("i8", lanes, f"zext {value.typed} to {byte}")
    if not dtype.is_half:
        return value
    known = e.stored.get((value.text, dtype))
    if known is not None:
        return known
    if dtype is DType.BFLOAT16:
        return _to_bfloat16(e, value)
    half = Value("half", "", lanes).type
    return e.text.value("half", lanes, f"fptrunc {value.typed} to {half}")


def _repeat(lanes: int, element: str, value: int) -> str:
    return f"splat ({element} {value})" if lanes else str(value)


def _to_bfloat16(e: Emitter, value: Value) -> Value:
    """Round to nearest even on the bits; a NaN stays a NaN and keeps its sign."""
    lanes = value.lanes
    bits, short = Value("i32", "", lanes).type, Value("i16", "", lanes).type

    def constant(number: int) -> str:
        return _repeat(lanes, "i32", number)

    t = e.text
    raw = t.define(f"bitcast {value.typed} to {bits}")
    odd = t.define(f"and {bits} {t.define(f'lshr {bits} {raw}, {constant(16)}')}, {constant(1)}")
    bias = t.define(f"add {bits} {odd}, {constant(0x7FFF)}")
    rounded = t.define(f"add {bits} {raw}, {bias}")
    quiet = t.define(f"or {bits} {raw}, {constant(0x400000)}")
    is_nan = t.value("i1", lanes, f"fcmp uno {value.type} {value.text}, {value.text}")
    chosen = t.define(f"select {is_nan.typed}, {bits} {quiet}, {bits} {rounded}")
    high = t.define(f"lshr {bits} {chosen}, {constant(16)}")
    return t.value("i16", lanes, f"trunc {bits} {high} to {short}")
