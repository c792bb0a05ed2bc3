"""Asynchronous copies into shared memory: ``cp.async`` of 4 to 16 bytes on GPUs that have it.

Narrower elements are copied synchronously by the thread itself, so waiting for them does nothing.
"""

from __future__ import annotations

from ansorpy.codegen.clike.sharing import sharing
from ansorpy.codegen.cuda.emit.elements import element
from ansorpy.codegen.cuda.emit.emitter import Emitter
from ansorpy.codegen.cuda.emit.expressions import value
from ansorpy.codegen.unsupported import buffer_of
from ansorpy.ir.expr import Const, Expr, Load, Select
from ansorpy.ir.loops import AsyncCopy, Store

__all__ = ["LEAST_BYTES", "async_copy", "copied", "source_of"]

LEAST_BYTES = 4


def async_copy(e: Emitter, s: AsyncCopy) -> None:
    """Start copying one element; one that is always zero is stored."""
    if s.buffer.dtype.bytes < LEAST_BYTES or isinstance(s.value, Const):
        e.statement(Store(s.buffer, s.indices, s.value, None))
        return
    load, cond = source_of(s)
    target = element(e, s.buffer, s.indices)
    source = element(e, buffer_of(load), load.indices)
    with e.by_the_first():
        e.line(copied(e, f"&{target}", f"&{source}", cond))


def source_of(s: AsyncCopy) -> tuple[Load, Expr | None]:
    """The load that is copied, and its condition, if any; zeros are copied where it is false."""
    if isinstance(s.value, Select):
        assert isinstance(s.value.then, Load)
        return s.value.then, s.value.cond
    assert isinstance(s.value, Load)
    return s.value, None


def copied(e: Emitter, target: str, source: str, cond: Expr | None) -> str:
    """Emit the call that copies from one address to the other."""
    e.need("copies")
    if cond is None:
        return f"copy_async({target}, {source});"
    with sharing(e, cond):
        return f"copy_async({target}, {source}, {value(e, cond).text});"
