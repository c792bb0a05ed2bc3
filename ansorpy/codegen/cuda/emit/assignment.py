"""Stores as C assignments."""

from __future__ import annotations

from ansorpy.codegen.cuda.emit.arithmetic import binary
from ansorpy.codegen.cuda.emit.emitter import C_TYPES, Emitter, register_type
from ansorpy.codegen.cuda.emit.expressions import narrowed, read, stored, value
from ansorpy.ir.expr import ReduceKind
from ansorpy.ir.loops import Store

__all__ = ["assignment"]

_PLAIN = {ReduceKind.SUM: "+=", ReduceKind.PROD: "*="}


def assignment(e: Emitter, target: str, s: Store) -> str:
    """Emit ``target = value``, or combine the value of *s* with what *target* holds."""
    dtype = s.buffer.dtype
    if s.reduce is None:
        return f"{target} = {stored(e, s.value, dtype).text}"
    code = value(e, s.value)
    if s.reduce in _PLAIN and dtype.is_float and register_type(dtype) == C_TYPES[dtype]:
        return f"{target} {_PLAIN[s.reduce]} {code.text}"
    total = binary(e, s.reduce.combiner, dtype, read(e, target, dtype), code)
    return f"{target} = {narrowed(e, total, dtype).text}"
