"""LLVM IR as text: typed values, constants, and a function written block by block.

It is text rather than an object model because build time limits search throughput: emitting
one instruction costs about a microsecond, and LLVM parses the text faster than any binding
could build it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ansorpy.ir.dtypes import DType

__all__ = [
    "ATTRIBUTES", "INLINE", "FunctionText", "Value", "element_bytes", "float_literal", "int_vector",
    "mask_bits", "mask_literal", "register_type", "storage_type", "type_of",
]  # fmt: skip

ATTRIBUTES = "attributes #0 = { nounwind }"
"""What a module defines for its functions, which all have these attributes."""

INLINE = 1 << 20
"""The level of a value that is computed inside a body and cannot be hoisted."""

_STORAGE = {
    DType.FLOAT64: "double", DType.FLOAT32: "float", DType.FLOAT16: "half",
    DType.BFLOAT16: "i16", DType.INT64: "i64", DType.UINT64: "i64", DType.INT32: "i32",
    DType.UINT32: "i32", DType.INT16: "i16", DType.UINT16: "i16", DType.INT8: "i8",
    DType.UINT8: "i8", DType.BOOL: "i8",
}  # fmt: skip

_NO_LABEL = re.compile(r"[^\w.]", re.ASCII)
"""Characters that labels do not keep: LLVM reads no letters but those of ASCII there."""

_BYTES = {dtype: dtype.bytes for dtype in DType}


def element_bytes(dtype: DType) -> int:
    """Bytes of one stored element; a table lookup, because every access needs it."""
    return _BYTES[dtype]


def storage_type(dtype: DType) -> str:
    """The LLVM type of one stored element; bfloat16 is stored as its bits, a bool as a byte."""
    return _STORAGE[dtype]


def register_type(dtype: DType) -> str:
    """The LLVM type a value is computed in: 16-bit floats are computed as float."""
    if dtype is DType.BOOL:
        return "i1"
    if dtype.is_half:
        return "float"
    return _STORAGE[dtype]


@dataclass(frozen=True, slots=True)
class Value:
    """An SSA value or literal: element type, text, and lanes (0 for a scalar).

    ``level`` is the loop scope whose prelude already holds it (see ``scopes.py``).
    """

    element: str
    text: str
    lanes: int = 0
    level: int = INLINE

    @property
    def type(self) -> str:
        return type_of(self.element, self.lanes)

    @property
    def typed(self) -> str:
        """``type text``, the form of operands of calls and loads."""
        return f"{self.type} {self.text}"

    @property
    def is_float(self) -> bool:
        return self.element in ("float", "double")


def type_of(element: str, lanes: int) -> str:
    """The LLVM type of a vector of *lanes* elements; of a scalar if *lanes* is 0."""
    return f"<{lanes} x {element}>" if lanes else element


def float_literal(value: float, element: str) -> str:
    """*value* rounded to *element* (``float`` or ``double``) in LLVM's exact hexadecimal form."""
    if element == "float":
        value = _to_float32(float(value))
    return f"0x{struct.unpack('<Q', struct.pack('<d', float(value)))[0]:016X}"


def _to_float32(value: float) -> float:
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return rounded


def int_vector(element: str, values: Iterable[int | str]) -> str:
    """A vector constant, one literal per lane."""
    return "<" + ", ".join(f"{element} {value}" for value in values) + ">"


def mask_literal(bits: Sequence[bool]) -> Value:
    """A constant ``i1`` vector."""
    return Value("i1", int_vector("i1", (int(bit) for bit in bits)), len(bits), 0)


def mask_bits(mask: Value) -> tuple[bool, ...] | None:
    """The lanes of a mask if it is a literal, else None."""
    if mask.text.startswith("<"):
        return tuple(item.strip() == "i1 1" for item in mask.text[1:-1].split(","))
    return None


class FunctionText:
    """One function under construction: blocks, each a label and segments of lines.

    A segment can still be filled after later segments exist; loop preludes (phis, and values
    hoisted to the head of the loop) are such segments.
    """

    def __init__(self, signature: str) -> None:
        self._signature = signature
        self._segments: list[list[str]] = []
        self._names = 0
        self._labels = 0
        self.block = "entry"
        self.out: list[str] = self.segment()

    def segment(self) -> list[str]:
        """Open a new segment at the current end; lines appended to it later stay at this place."""
        lines: list[str] = []
        self._segments.append(lines)
        return lines

    def continue_here(self) -> None:
        """Put further code into a fresh segment at the end."""
        self.out = self.segment()

    def fresh(self) -> str:
        self._names += 1
        return f"%v{self._names}"

    def fresh_label(self, hint: str) -> str:
        self._labels += 1
        return f"{_NO_LABEL.sub('_', hint)}.{self._labels}"

    def start_block(self, label: str) -> None:
        """Begin block *label*; the previous block must already end with a branch."""
        self.block = label
        self.out = self.segment()
        self.out.append(f"{label}:")

    def emit(self, line: str) -> None:
        self.out.append("  " + line)

    def define(self, text: str) -> str:
        """Append ``%name = text`` and return the name."""
        self._names += 1
        name = f"%v{self._names}"
        self.out.append(f"  {name} = {text}")
        return name

    def value(self, element: str, lanes: int, text: str) -> Value:
        return Value(element, self.define(text), lanes)

    def branch(self, label: str) -> None:
        self.emit(f"br label %{label}")

    def branch_if(self, condition: str, then: str, other: str) -> None:
        self.emit(f"br i1 {condition}, label %{then}, label %{other}")

    def render(self) -> str:
        body = "\n".join(line for segment in self._segments for line in segment)
        return f"define {self._signature} #0 {{\nentry:\n{body}\n}}\n"

    def call(self, result: str, name: str, arguments: Sequence[Value], flags: str = "") -> str:
        """The text of a call, without the name of its result."""
        joined = ", ".join(argument.typed for argument in arguments)
        return f"call {flags}{result} @{name}({joined})"
