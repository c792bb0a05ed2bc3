"""The part of an entry that reads the sizes of dimensions off the shapes of a call's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from ansorpy.codegen.llvm.emit.text import FunctionText
from ansorpy.ir.extents import Extent, Form
from ansorpy.ir.symbols import Dim, SizeOp
from ansorpy.runtime.sizes import Told

__all__ = ["Sizes", "emit_array", "emit_extent", "emit_size"]

Sizes = Mapping[Dim, str]
"""The value that holds the size of each dimension."""


def emit_size(text: FunctionText, told: Told, given: str) -> tuple[str, str]:
    """Emit the size of a dimension for the extent *given*, and whether it is in range (an i1).

    An extent that is no multiple of the scale gives a size of which it is not the extent.
    """
    size, dim = given, told.dim
    if told.offset:
        size = text.define(f"sub i64 {size}, {told.offset}")
    if told.scale != 1:
        size = text.define(f"sdiv i64 {size}, {told.scale}")
    above = text.define(f"icmp sge i64 {size}, {dim.low}")
    below = text.define(f"icmp sle i64 {size}, {dim.high}")
    inside = text.define(f"and i1 {above}, {below}")
    if dim.step > 1:
        left = text.define(f"urem i64 {size}, {dim.step}")
        inside = text.define(f"and i1 {inside}, {text.define(f'icmp eq i64 {left}, 0')}")
    return size, inside


def emit_extent(text: FunctionText, extent: Extent, sizes: Sizes) -> str:
    """Emit the value of *extent* for *sizes*."""
    if isinstance(extent, int):
        return str(extent)

    def product(total: str, factor: str) -> str:
        return text.define(f"mul i64 {total}, {factor}")

    parts = []
    for atoms, c in extent.terms:
        values = [sizes[a] if isinstance(a, Dim) else _emit_form(text, a, sizes) for a in atoms]
        parts.append(reduce(product, [*values, str(c)] if c != 1 or not atoms else values))
    return reduce(lambda total, part: text.define(f"add i64 {total}, {part}"), parts)


def _emit_form(text: FunctionText, form: Form, sizes: Sizes) -> str:
    a, b = emit_extent(text, form.a, sizes), emit_extent(text, form.b, sizes)
    if form.op is not SizeOp.FLOORDIV:
        smaller = text.define(f"icmp slt i64 {a}, {b}")
        first, second = (a, b) if form.op is SizeOp.MIN else (b, a)
        return text.define(f"select i1 {smaller}, i64 {first}, i64 {second}")
    quotient = text.define(f"sdiv i64 {a}, {b}")
    left = text.define(f"srem i64 {a}, {b}")
    is_below = text.define(f"icmp slt i64 {left}, 0")  # divisors are positive
    return text.define(f"sub i64 {quotient}, {text.define(f'zext i1 {is_below} to i64')}")


def emit_array(text: FunctionText, dims: Sequence[Dim], sizes: Sizes) -> str:
    """Emit an array of the sizes of *dims*, as a kernel takes it; return its address."""
    array = text.define(f"alloca [{len(dims)} x i64], align 8")
    for n, dim in enumerate(dims):
        slot = text.define(f"getelementptr i8, ptr {array}, i64 {8 * n}") if n else array
        text.emit(f"store i64 {sizes[dim]}, ptr {slot}, align 8")
    return array
