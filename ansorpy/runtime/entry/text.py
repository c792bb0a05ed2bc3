"""Pieces of LLVM IR that all functions of an entry use."""

from __future__ import annotations

from ansorpy.codegen.llvm.emit.text import FunctionText
from ansorpy.ir.strides import ALIGNMENT_BYTES
from ansorpy.runtime.status import Status

__all__ = [
    "PARAMETERS", "aligned", "at", "larger", "metadata_global", "require", "return_unless",
]  # fmt: skip

PARAMETERS = {
    "plan": "ptr %inputs, ptr %outputs, i32 %threads, ptr %bytes",
    "run": "ptr %context, ptr %inputs, ptr %outputs, i32 %threads",
}
"""Those of the functions of the C interface."""


def metadata_global(name: str, metadata: str) -> str:
    """The definition of ``<name>_metadata``."""
    data = metadata.encode() + b"\0"
    text = "".join(f"\\{byte:02X}" for byte in data)
    return f'@{name}_metadata = constant [{len(data)} x i8] c"{text}"'


def require(text: FunctionText, condition: str, otherwise: Status) -> None:
    """Return *otherwise* unless *condition*, the text of an instruction, is true."""
    return_unless(text, condition, str(otherwise.value))


def return_unless(text: FunctionText, condition: str, value: str) -> None:
    """Return *value* unless *condition*, the text of an instruction, is true."""
    good, bad = text.fresh_label("good"), text.fresh_label("bad")
    text.branch_if(text.define(condition), good, bad)
    text.start_block(bad)
    text.emit(f"ret i32 {value}")
    text.start_block(good)


def at(text: FunctionText, base: str, offset: int | str) -> str:
    """The address *offset* bytes behind *base*."""
    if offset in (0, "0"):
        return base
    return text.define(f"getelementptr i8, ptr {base}, i64 {offset}")


def aligned(text: FunctionText, pointer: str) -> str:
    """Round *pointer* up to the alignment of workspaces and arena values."""
    number = text.define(f"ptrtoint ptr {pointer} to i64")
    skip = text.define(f"and i64 {text.define(f'sub i64 0, {number}')}, {ALIGNMENT_BYTES - 1}")
    return text.define(f"getelementptr i8, ptr {pointer}, i64 {skip}")


def larger(text: FunctionText, a: str, b: str) -> str:
    """The larger of two numbers."""
    is_above = text.define(f"icmp ugt i64 {a}, {b}")
    return text.define(f"select i1 {is_above}, i64 {a}, i64 {b}")
