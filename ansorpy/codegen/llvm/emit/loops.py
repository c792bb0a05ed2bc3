"""Emit counted loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ansorpy.codegen.llvm.emit.affine import Affine, Symbol, symbol
from ansorpy.codegen.llvm.emit.text import FunctionText

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emit.emitter import Emitter

__all__ = ["counted_loop"]


def counted_loop(
    e: Emitter,
    extent: int,
    hint: str,
    body: Callable[[Affine], None],
    *,
    begin: str = "0",
    end: str | None = None,
) -> None:
    """Emit ``for i in begin..end: body(i)`` as one bottom-tested block loop.

    At least one iteration runs, so there is no zero-trip branch.  ``0 <= i < extent`` holds;
    *end* is *extent* unless given.
    """
    text: FunctionText = e.text
    before, label, after = text.block, text.fresh_label(hint), text.fresh_label("done")
    text.branch(label)
    text.start_block(label)
    phi = text.out
    index = text.fresh()
    with e.nested_scope():
        body(symbol(Symbol(index, 0, extent - 1, e.level)))
        advanced = text.define(f"add nuw nsw i64 {index}, 1")
    phi.append(f"  {index} = phi i64 [ {begin}, %{before} ], [ {advanced}, %{text.block} ]")
    again = text.define(f"icmp ne i64 {advanced}, {end if end is not None else extent}")
    text.branch_if(again, label, after)
    text.start_block(after)
    text.continue_here()
