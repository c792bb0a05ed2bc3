"""Asynchronous copies into shared memory: ``cp.async`` of 4 to 16 bytes on GPUs that have it.

Narrower elements are copied synchronously by the thread itself, so waiting for them does nothing.
"""

from __future__ import annotations

from ansorpy.codegen.clike.sharing import sharing
from ansorpy.codegen.cuda.emit.elements import element
from ansorpy.codegen.cuda.emit.emitter import Emitter
from ansorpy.codegen.unsupported import buffer_of
from ansorpy.errors import CodegenError
from ansorpy.ir.expr import Const, Expr, Load, Select
from ansorpy.ir.loops import AsyncCopy, Store

__all__ = ["LEAST_BYTES", "async_copy", "constant_store", "copied", "source_of"]

LEAST_BYTES = 4


def async_copy(e: Emitter, s: AsyncCopy) -> None:
    """Start copying one element; one that is always zero is stored."""
    store = constant_store(s)
    if store is not None or s.buffer.dtype.bytes < LEAST_BYTES:
        e.statement(store or Store(s.buffer, s.indices, s.value, None))
        return
    load, cond = source_of(s)
    target = element(e, s.buffer, s.indices)
    source = element(e, buffer_of(load), load.indices)
    with e.by_the_first():
        e.line(copied(e, f"&{target}", f"&{source}", cond))


def constant_store(s: AsyncCopy) -> Store | None:
    """The store that replaces a copy of a constant, which has no source; None for other copies."""
    is_constant = isinstance(s.value, Const)
    return Store(s.buffer, s.indices, s.value, None) if is_constant else None


def source_of(s: AsyncCopy) -> tuple[Load, Expr | None]:
    """The load that is copied, and its condition, if any; zeros are copied where it is false.

    Raises:
        CodegenError: Nothing is loaded.
    """
    load, cond = (s.value.then, s.value.cond) if isinstance(s.value, Select) else (s.value, None)
    if not isinstance(load, Load):
        raise CodegenError(
            f"{s.buffer.name} is filled by a copy of no tensor",
            hint="copy elements of a tensor, or zeros where a condition is false",
        )
    return load, cond


def copied(e: Emitter, target: str, source: str, cond: Expr | None) -> str:
    """Emit the call that copies from one address to the other."""
    e.need("copies")
    if cond is None:
        return f"copy_async({target}, {source});"
    with sharing(e, cond):
        return f"copy_async({target}, {source}, {e.value(cond).text});"
