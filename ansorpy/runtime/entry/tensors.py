"""Tensors of the C interface as LLVM IR: where their extents are, and comparing shapes."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.codegen.llvm.emit.text import FunctionText
from ansorpy.runtime.entry.text import at
from ansorpy.runtime.ports import MAX_RANK

__all__ = ["TENSOR_BYTES", "difference", "extent_of", "place_of"]

TENSOR_BYTES = 8 + 8 * MAX_RANK


def place_of(text: FunctionText, table: str, number: int, axis: int) -> str:
    """Emit the address of an extent of tensor *number* of *table*."""
    return at(text, table, number * TENSOR_BYTES + 8 + 8 * axis)


def extent_of(text: FunctionText, table: str, number: int, axis: int) -> str:
    """Load an extent of a tensor."""
    return text.define(f"load i64, ptr {place_of(text, table, number, axis)}, align 8")


def difference(text: FunctionText, given: Sequence[str], wanted: Sequence[str]) -> str:
    """A number that is 0 if two shapes are equal; one branch can check all extents."""
    total = "0"
    for one, other in zip(given, wanted, strict=True):
        total = text.define(f"or i64 {total}, {text.define(f'xor i64 {one}, {other}')}")
    return total
