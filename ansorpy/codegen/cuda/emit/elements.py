"""Elements of buffers as C lvalues."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.codegen.clike.indices import flat_index, index
from ansorpy.codegen.cuda.emit.emitter import Emitter
from ansorpy.ir.expr import Expr
from ansorpy.ir.loops import Buffer, Scope

__all__ = ["element", "position"]


def element(e: Emitter, buffer: Buffer, indices: Sequence[Expr]) -> str:
    """Emit ``name[i][j]`` for a thread's local buffer, ``name[flat index]`` for memory."""
    name = e.place(buffer)
    if buffer.scope is Scope.LOCAL:
        inside = [index(e, e.simplified(i)).text for i in indices] or ["0"]
        return name + "".join(f"[{i}]" for i in inside)
    return f"{name}[{position(e, buffer, indices)}]"


def position(e: Emitter, buffer: Buffer, indices: Sequence[Expr]) -> str:
    """The position of an element in memory, in elements."""
    flat = index(e, flat_index(e, buffer, indices)).text
    if not buffer.swizzle:
        return flat
    e.need("swizzled")
    return f"swizzled<{buffer.swizzle}, {buffer.dtype.bytes}>({flat})"
