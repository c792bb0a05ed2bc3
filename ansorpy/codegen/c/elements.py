"""Elements of buffers as C lvalues."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.codegen.c.emitter import Emitter
from ansorpy.codegen.clike.indices import flat_index, index
from ansorpy.ir.expr import Expr
from ansorpy.ir.loops import Buffer
from ansorpy.ir.simplify import simplify

__all__ = ["element"]


def element(e: Emitter, buffer: Buffer, indices: Sequence[Expr]) -> str:
    """Emit ``name[i][j]`` for a local array, ``name[flat index]`` for memory."""
    name = e.place(buffer)
    if buffer in e.arrays:
        return name + "".join(f"[{index(e, simplify(i, e.ranges)).text}]" for i in indices)
    return f"{name}[{index(e, flat_index(e, buffer, indices)).text}]"
