"""Stores as C assignments."""

from __future__ import annotations

from ansorpy.codegen.clike.operators import COMPOUND
from ansorpy.codegen.cuda.emit.arithmetic import binary
from ansorpy.codegen.cuda.emit.emitter import Emitter
from ansorpy.codegen.cuda.emit.expressions import narrowed, read, stored
from ansorpy.ir.loops import Store

__all__ = ["assignment"]


def assignment(e: Emitter, target: str, s: Store) -> str:
    """Emit ``target = value``, or combine the value of *s* with what *target* holds."""
    dtype = s.buffer.dtype
    if s.reduce is None:
        return f"{target} = {stored(e, s.value, dtype).text}"
    code = e.value(s.value)
    if s.reduce in COMPOUND and dtype.is_float and not dtype.is_half:
        return f"{target} {COMPOUND[s.reduce]} {code.text}"
    total = binary(e, s.reduce.combiner, dtype, read(e, target, dtype), code)
    return f"{target} = {narrowed(e, total, dtype).text}"
