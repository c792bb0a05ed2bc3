"""Statements as lines of C: one function a node kind, listed in :data:`STATEMENTS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ansorpy.codegen.c.arithmetic import binary
from ansorpy.codegen.c.elements import element
from ansorpy.codegen.c.emitter import Emitter
from ansorpy.codegen.c.expressions import narrowed, read, stored
from ansorpy.codegen.c.regions import parallel_loop
from ansorpy.codegen.c.types import storage_type
from ansorpy.codegen.c.vector.helpers import vector_type
from ansorpy.codegen.c.vector.loops import vector_loop
from ansorpy.codegen.c.vector.stores import vector_store
from ansorpy.codegen.clike.code import ADD, COMPARE, Code
from ansorpy.codegen.clike.comments import in_comment
from ansorpy.codegen.clike.indices import index
from ansorpy.codegen.clike.operators import COMPOUND
from ansorpy.codegen.clike.sharing import sharing
from ansorpy.codegen.unsupported import gpu_loop
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import as_expr
from ansorpy.ir.loops import (
    Alloc,
    Buffer,
    For,
    ForKind,
    If,
    Let,
    Prefetch,
    Scope,
    Seq,
    Stmt,
    Store,
)
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.sizes import fixed

__all__ = ["STATEMENTS"]


def _seq(e: Emitter, s: Seq) -> None:
    for part in s.body:
        e.is_first = False
        e.statement(part)


def _for(e: Emitter, s: For) -> None:
    emit = _LOOPS.get(s.kind)
    if emit is None:
        raise gpu_loop(s)
    emit(e, s)


def _loop(e: Emitter, s: For) -> None:
    if s.extent == 1:
        with e.variable(s.var, Code("0"), (0, 0)):
            e.statement(s.body)
        return
    with e.names.block():
        name, end = e.names.give(s.var), index(e, as_expr(s.extent)).at(COMPARE + 1)
        fused = s.var.name if "@" in s.var.name else ""
        with (
            e.block(f"for ({e.indices.narrow} {name} = 0; {name} < {end}; ++{name})", fused),
            e.variable(s.var, Code(name), (0, s.extent - 1)),
        ):
            _alone(e, s.body)


def _alone(e: Emitter, body: Stmt) -> None:
    """Emit the only statement of the block that was just opened."""
    e.is_first = True
    e.statement(body)


def _if(e: Emitter, s: If) -> None:
    with sharing(e, s.cond):
        cond = e.value(s.cond).text
    with e.block(f"if ({cond})"):
        _alone(e, s.then)
    if s.other is not None:
        with e.otherwise():
            _alone(e, s.other)


def _let(e: Emitter, s: Let) -> None:
    if e.lanes is not None and e.lanes.varies(s.value):
        e.statement(substitute(s.body, {s.var: s.value}))
        return
    code = index(e, s.value)
    is_wide = code.wide or not e.fits(s.value)
    with e.declaring():
        name = e.names.give(s.var)
        e.line(f"const {e.indices.of(is_wide)} {name} = {code.text};")
        with e.variable(s.var, Code(name, wide=is_wide), e.bounds(s.value)):
            _alone(e, s.body)


def _alloc(e: Emitter, s: Alloc) -> None:
    """Declare the buffer in its own block: buffers with disjoint lifetimes share its bytes."""
    with e.declaring():
        name, kind, plan = e.names.give(s.buffer), storage_type(s.buffer.dtype), e.unit.storage
        if s.buffer in e.unit.variables:
            _variables(e, s.buffer)
        elif s.buffer in plan.stack:
            _array(e, s.buffer)
        else:
            is_local = s.buffer.scope is Scope.LOCAL
            bytes_ = (plan.scratch if is_local else plan.shared)[s.buffer]
            offset = index(e, as_expr(bytes_)).at(ADD)
            place = f"(void *)({'scratch' if is_local else 'workspace'} + {offset})"
            shape = in_comment(", ".join(map(str, s.buffer.shape)))
            e.line(f"{kind} *restrict const {name} = {place};  // [{shape}]")
        _alone(e, s.body)


def _array(e: Emitter, buffer: Buffer) -> None:
    """Declare an array of the buffer's shape, or a flat one if vectors may cross its rows."""
    sizes = f"[{buffer.size}]"
    if not e.unit.style.vectors:
        e.arrays.add(buffer)
        sizes = "".join(f"[{extent}]" for extent in buffer.shape)
    e.line(f"{storage_type(buffer.dtype)} {e.place(buffer)}{sizes};")
    _use(e, buffer, [e.place(buffer)])


def _use(e: Emitter, buffer: Buffer, names: list[str]) -> None:
    """Mark *names* as used if *buffer* is never read, or compilers would warn."""
    if buffer not in e.unit.read:
        e.line(" ".join(f"(void){name};" for name in names))


def _variables(e: Emitter, buffer: Buffer) -> None:
    """Declare the variables of a register tile; inside a vector loop, only those of its chunk."""
    pieces, columns = e.unit.variables[buffer], (buffer.shape or (1,))[-1]
    names: dict[str, list[str]] = {}
    e.pieces[buffer] = {}
    for at, piece in pieces.items():
        if e.chunk is not None and at % columns != e.chunk:
            continue
        kind = storage_type(buffer.dtype)
        if piece.width > 1:
            kind = vector_type(buffer.dtype, piece.width)
            e.need(kind)
        where = "".join(
            f"_{n}" for n in np.unravel_index(at, tuple(map(fixed, buffer.shape)) or (1,))
        )
        e.pieces[buffer][at] = e.names.fresh(buffer.name + (where if len(pieces) > 1 else ""))
        names.setdefault(kind, []).append(e.pieces[buffer][at])
    for kind, group in names.items():
        e.line(f"{kind} {', '.join(group)};")
        _use(e, buffer, group)


def _store(e: Emitter, s: Store) -> None:
    if e.lanes is not None:
        vector_store(e, s)
        return
    with sharing(e, s.value):
        target = element(e, s.buffer, s.indices)
        e.line(f"{_assignment(e, target, s)};")


def _assignment(e: Emitter, target: str, s: Store) -> str:
    """``target = value``, or the value of *s* combined with what *target* holds."""
    dtype = s.buffer.dtype
    if s.reduce is None:
        return f"{target} = {stored(e, s.value, dtype).text}"
    code = e.value(s.value)
    unsigned = dtype in (DType.UINT32, DType.UINT64)
    if s.reduce in COMPOUND and (unsigned or (dtype.is_float and not dtype.is_half)):
        return f"{target} {COMPOUND[s.reduce]} {code.text}"
    total = binary(e, s.reduce.combiner, dtype, read(e, target, dtype), code)
    return f"{target} = {narrowed(e, total, dtype).text}"


def _prefetch(e: Emitter, s: Prefetch) -> None:
    """Emit nothing: C has no prefetch."""


_LOOPS: Mapping[ForKind, Callable[[Emitter, For], None]] = {
    ForKind.SERIAL: _loop, ForKind.UNROLLED: _loop, ForKind.VECTORIZED: vector_loop,
    ForKind.PARALLEL: parallel_loop,
}  # fmt: skip

STATEMENTS: Mapping[type[Stmt], Callable[[Emitter, Any], None]] = {
    Seq: _seq, For: _for, If: _if, Let: _let, Alloc: _alloc, Store: _store, Prefetch: _prefetch,
}  # fmt: skip
