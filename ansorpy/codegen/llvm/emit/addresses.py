"""Emit addresses: a pointer for the varying part of an index, hoisted, plus a constant."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ansorpy.codegen.llvm.emit.affine import Affine, Symbol, constant
from ansorpy.codegen.llvm.emit.indices import expanded, index_value
from ansorpy.codegen.llvm.emit.text import Value
from ansorpy.ir.expr import as_expr

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emit.emitter import Emitter, Place

__all__ = ["address", "alignment", "flatten", "lane_pointers", "walked"]


def flatten(e: Emitter, place: Place, indices: list[Affine]) -> Affine:
    """The offset in elements that *indices* address."""
    total = constant(0)
    for index, stride in zip(indices, place.strides, strict=True):
        if isinstance(stride, int):
            total = total + index.scaled(stride)
        else:
            total = total + expanded(e, index, e.index(as_expr(stride)))
    return total


def address(e: Emitter, place: Place, offset: Affine, size: int) -> str:
    """Emit the pointer for the terms of *offset*, constants excluded.

    An element has *size* bytes.  Each term is added in the prelude of the loop that owns its
    symbol, outermost first, so an inner loop only adds what it changes.
    """
    return walked(e, place.pointer, 0, offset.terms, size)[0]


def walked(
    e: Emitter, pointer: str, level: int, terms: Mapping[Symbol, int], size: int
) -> tuple[str, int]:
    """Add *terms* to *pointer* (known at *level*), each in the scope that defines its symbol.

    Returns the sum and the level at which it is known.
    """
    for term, coef in sorted(terms.items(), key=lambda item: item[0].level):
        level = max(level, term.level)
        step = e.pure(term.level, f"mul i64 {term.text}, {coef * size}")
        pointer = e.pure(level, f"getelementptr i8, ptr {pointer}, i64 {step}")
    return pointer, level


def alignment(place: Place, offset: Affine, const: int, size: int) -> int:
    """The alignment in bytes that the address is known to have."""
    return math.gcd(place.align, const * size, *(c * size for c in offset.terms.values()))


def lane_pointers(e: Emitter, place: Place, offset: Affine, element: str) -> Value:
    """One pointer per lane, for accesses with no better form."""
    lanes = e.vector.width
    index = e.widened(index_value(e, offset), lanes)
    text = f"getelementptr {element}, ptr {place.pointer}, {index.typed}"
    return Value("ptr", e.pure(index.level, text), lanes, index.level)
