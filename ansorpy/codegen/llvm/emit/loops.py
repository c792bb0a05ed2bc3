"""Emit counted loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ansorpy.codegen.llvm.emit.affine import Affine, Symbol, symbol
from ansorpy.codegen.llvm.emit.indices import scalar
from ansorpy.codegen.llvm.emit.text import FunctionText
from ansorpy.ir.expr import as_expr
from ansorpy.ir.extents import Extent, least, most
from ansorpy.ir.loops import For

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emit.emitter import Emitter

__all__ = ["counted_loop", "serial_loop"]


def counted_loop(
    e: Emitter,
    extent: Extent,
    hint: str,
    body: Callable[[Affine], None],
    *,
    begin: str = "0",
    end: str | None = None,
) -> None:
    """Emit ``for i in begin..end: body(i)`` as one bottom-tested block loop.

    ``0 <= i < extent`` holds; *end* is *extent* unless given.  There is a zero-trip branch only if
    the extent may be 0.
    """
    text: FunctionText = e.text
    if end is None:
        end = scalar(e, e.index(as_expr(extent)))[0]
    before, label, after = text.block, text.fresh_label(hint), text.fresh_label("done")
    if least(extent) > 0:
        text.branch(label)
    else:
        text.branch_if(text.define(f"icmp slt i64 {begin}, {end}"), label, after)
    text.start_block(label)
    phi = text.out
    index = text.fresh()
    with e.nested_scope():
        body(symbol(Symbol(index, 0, most(extent) - 1, e.level)))
        advanced = text.define(f"add nuw nsw i64 {index}, 1")
    phi.append(f"  {index} = phi i64 [ {begin}, %{before} ], [ {advanced}, %{text.block} ]")
    again = text.define(f"icmp ne i64 {advanced}, {end}")
    text.branch_if(again, label, after)
    text.start_block(after)
    text.continue_here()


def serial_loop(e: Emitter, loop: For) -> None:
    """Emit *loop*, of whatever kind, one iteration after the other."""

    def body(index: Affine) -> None:
        with e.bound({loop.var: index}):
            e.statement(loop.body)

    counted_loop(e, loop.extent, loop.var.name, body)
