"""Elements of buffers as C lvalues."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.codegen.c.emitter import Emitter
from ansorpy.codegen.clike.indices import flat_index, index
from ansorpy.ir.expr import Const, Expr
from ansorpy.ir.loops import Buffer

__all__ = ["element", "variable_of"]


def element(e: Emitter, buffer: Buffer, indices: Sequence[Expr]) -> str:
    """Emit ``name[i][j]`` for a local array, ``name[flat index]`` for memory."""
    flat = flat_index(e, buffer, indices)
    piece = variable_of(e, buffer, flat)
    if piece is not None:
        return piece
    name = e.place(buffer)
    if buffer in e.arrays:
        return name + "".join(f"[{index(e, e.simplified(i)).text}]" for i in indices)
    return f"{name}[{index(e, flat).text}]"


def variable_of(e: Emitter, buffer: Buffer, flat: Expr) -> str | None:
    """The variable that begins with the element at offset *flat*; None if *buffer* is an array."""
    pieces = e.pieces.get(buffer)
    if pieces is None:
        return None
    assert isinstance(flat, Const), "a register tile has constant indices"
    return pieces[int(flat.value)]
