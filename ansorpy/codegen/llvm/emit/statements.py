"""Emit statements, with one function per node kind, listed in :data:`STATEMENTS`.

Instructions of one thread have become loops (:mod:`ansorpy.codegen.passes.expand_instructions`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ansorpy.codegen.llvm.emit.accesses import access, any_of, load, store
from ansorpy.codegen.llvm.emit.addresses import address
from ansorpy.codegen.llvm.emit.affine import Affine, constant, lane_values
from ansorpy.codegen.llvm.emit.arithmetic import (
    FLOAT_BINARY,
    choose,
    fma,
    horizontal,
    integer_binary,
    number,
)
from ansorpy.codegen.llvm.emit.dots import dot
from ansorpy.codegen.llvm.emit.loops import serial_loop
from ansorpy.codegen.llvm.emit.parallel import emit_parallel
from ansorpy.codegen.llvm.emit.text import Value
from ansorpy.codegen.llvm.emit.transposes import transposes
from ansorpy.codegen.llvm.emit.vectorized import emit_blocks, emit_vectorized
from ansorpy.codegen.unsupported import gpu_loop
from ansorpy.errors import CodegenError
from ansorpy.ir.dots import DOTS
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Binary, BinaryOp, Call, Expr, ReduceKind, Var, walk
from ansorpy.ir.loops import (
    Alloc,
    For,
    ForKind,
    If,
    Let,
    Prefetch,
    Seq,
    Stmt,
    Store,
    walk_stmts,
)
from ansorpy.ir.sizes import fixed

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emit.emitter import Emitter

__all__ = ["STATEMENTS"]


def _seq(e: Emitter, stmt: Seq) -> None:
    for part in stmt.body:
        e.statement(part)


def _for(e: Emitter, loop: For) -> None:
    if loop.extent == 1 and loop.kind is not ForKind.PARALLEL:
        with e.bound({loop.var: constant(0)}):
            e.statement(loop.body)
        return
    handler = _LOOPS.get(loop.kind)
    if handler is None:
        raise gpu_loop(loop)
    handler(e, loop)


def _unrolled(e: Emitter, loop: For) -> None:
    if e.lanes is None and transposes(loop):
        emit_blocks(e, loop)
        return
    fenced = _refills_registers(e, loop)
    for step in range(fixed(loop.extent)):
        if fenced and step:
            _fence(e)
        with e.bound({loop.var: constant(step)}):
            e.statement(loop.body)


def _refills_registers(e: Emitter, loop: For) -> bool:
    """True for an unrolled reduce loop whose iterations add to the same large set of vectors."""
    target = e.module.target
    inner = [s for s in walk_stmts(loop.body) if isinstance(s, For)]
    accumulators = 0
    for inside in walk_stmts(loop.body):
        if not isinstance(inside, Store):
            continue
        indexing = {v for index in inside.indices for v in walk(index) if isinstance(v, Var)}
        if inside.reduce is None or loop.var in indexing:
            return False
        count = 1
        for other in inner:
            if other.var in indexing and other.kind in (ForKind.UNROLLED, ForKind.VECTORIZED):
                count *= fixed(other.extent)
        accumulators += -(-count // target.lanes(inside.buffer.dtype.lane_bits))
    return accumulators > target.vector_registers // 2


def _fence(e: Emitter) -> None:
    """Emit a compiler fence; no value loaded before it is reused.

    Without it, iterations of a tile share so many values that accumulators spill (measured on a 3x3
    convolution with unrolled taps: 80 % of peak without fences, 97 % with them).
    """
    e.text.emit('call void asm sideeffect "", "~{memory}"()')
    e.scope.loads.clear()


def _if(e: Emitter, stmt: If) -> None:
    cond = e.value(stmt.cond)
    if cond.text in ("true", "false"):
        taken = stmt.then if cond.text == "true" else stmt.other
        if taken is not None:
            e.statement(taken)
        return
    if cond.lanes:
        _masked_if(e, stmt, cond)
        return
    text = e.text
    then, other, done = (text.fresh_label(hint) for hint in ("then", "else", "endif"))
    text.branch_if(cond.text, then, other if stmt.other is not None else done)
    for label, side in ((then, stmt.then), (other, stmt.other)):
        if side is None:
            continue
        text.start_block(label)
        with e.nested_scope():
            e.statement(side)
        text.branch(done)
    text.start_block(done)
    text.continue_here()


def _masked_if(e: Emitter, stmt: If, cond: Value) -> None:
    """Emit both sides of a condition that differs between lanes, each in its own lanes."""
    with e.guarded(cond):
        e.statement(stmt.then)
    if stmt.other is not None:
        with e.guarded(cond, negated=True):
            e.statement(stmt.other)


def _let(e: Emitter, stmt: Let) -> None:
    with e.bound({stmt.var: e.index(stmt.value)}):
        e.statement(stmt.body)


def _alloc(e: Emitter, stmt: Alloc) -> None:
    """Emit the body; the storage plan placed every buffer when the function was opened."""
    if e.lanes is not None and not _apart(e, stmt):
        raise CodegenError(
            f"{stmt.buffer.name} is allocated inside a vectorized loop, whose lanes would share it",
            hint="allocate it outside, or do not vectorize that loop",
        )
    e.statement(stmt.body)


def _apart(e: Emitter, stmt: Alloc) -> bool:
    """True if each lane has its own elements: every store is indexed by a lane variable."""
    vectors = {var for var, index in e.env.items() if index.is_vector}
    return all(
        any(v in vectors for index in inner.indices for v in walk(index))
        for inner in walk_stmts(stmt.body)
        if isinstance(inner, Store) and inner.buffer is stmt.buffer
    )


def _store(e: Emitter, stmt: Store) -> None:
    use = access(e, stmt.buffer, [e.index(index) for index in stmt.indices])
    if stmt.reduce is None:
        store(e, use, e.value(stmt.value))
        return
    if e.lanes is not None and _lanes_collide(e, use.offset):
        _reduce_colliding(e, stmt)
        return
    store(e, use, combined(e, stmt.reduce, load(e, use), stmt.value))


def combined(e: Emitter, kind: ReduceKind, old: Value, value: Expr) -> Value:
    """Combine *old* with *value*; a sum of products becomes fused multiply-adds."""
    dtype = value.dtype
    if kind is ReduceKind.SUM and isinstance(value, Call) and value.fn in DOTS:
        a, b = (e.value(arg) for arg in value.args)
        return dot(e, value.fn, a, b, old)
    if kind is ReduceKind.SUM and dtype.is_float and _is_product(value):
        return fma(e, e.value(value.a), e.value(value.b), old)  # type: ignore[attr-defined]
    return _combine(e, kind, dtype, old, e.value(value))


def _is_product(value: Expr) -> bool:
    return isinstance(value, Binary) and value.op is BinaryOp.MUL


def _combine(e: Emitter, kind: ReduceKind, dtype: DType, old: Value, new: Value) -> Value:
    if dtype.is_float:
        return FLOAT_BINARY[kind.combiner](e, old, new)
    return integer_binary(e, kind.combiner, dtype, old, new)


def _lanes_collide(e: Emitter, offset: Affine) -> bool:
    """True if two active lanes accumulate, or may accumulate, into one element."""
    if offset.has_vector_symbol:
        return True
    lanes = e.vector.constants(offset)
    return len(set(lanes)) < len(lanes)


def _reduce_colliding(e: Emitter, stmt: Store) -> None:
    """Accumulate lanes that share an element: as a tree if all share one, else lane by lane.

    If a condition excludes every lane, the element is not touched: it may not exist, or may belong
    to another thread.
    """
    assert stmt.reduce is not None
    lanes = e.vector
    offset = access(e, stmt.buffer, [e.index(index) for index in stmt.indices]).offset
    active = lanes.constants(offset)
    if offset.has_vector_symbol or len(set(active)) > 1:
        _lane_by_lane(e, stmt)
        return
    value = e.widened(e.value(stmt.value), lanes.width)
    mask = e.lane_guard()
    if not lanes.is_full:
        mask = lanes.mask if mask is None else e.both(mask, lanes.mask, lanes.width)
    dtype = stmt.value.dtype
    if mask is not None:
        neutral = number(stmt.reduce.identity(dtype), value)
        value = choose(e, mask, value, neutral)
    total = horizontal(e, stmt.reduce, dtype, value)
    if not e.guards or mask is None:
        _combine_shared(e, stmt, total)
        return
    with e.only_if(any_of(e, mask).text, "some", "none"):
        _combine_shared(e, stmt, total)


def _combine_shared(e: Emitter, stmt: Store, total: Value) -> None:
    """Combine the element that all lanes share with *total*, the reduction of the lanes."""
    assert stmt.reduce is not None
    lanes, guards, e.lanes, e.guards = e.lanes, e.guards, None, ()
    use = access(e, stmt.buffer, [_first_lane(e.index(index)) for index in stmt.indices])
    store(e, use, _combine(e, stmt.reduce, stmt.value.dtype, load(e, use), total))
    e.lanes, e.guards = lanes, guards


def _first_lane(index: Affine) -> Affine:
    return Affine(index.terms, lane_values(index, 1)[0])


def _lane_by_lane(e: Emitter, stmt: Store) -> None:
    """Emit the store as scalar code, once per lane; lanes that guards exclude are branched over."""
    lanes, mask, guards = e.vector, e.lane_guard(), e.guards
    vectors = {var: index for var, index in e.env.items() if index.is_vector}
    if any(index.has_vector_symbol for index in vectors.values()):
        raise CodegenError(
            f"lanes accumulate into elements of {stmt.buffer.name} through a computed index",
            hint="do not vectorize this loop",
        )
    e.lanes, e.guards = None, tuple(guard for guard in guards if not guard.cond.lanes)
    for lane in range(lanes.active):
        scalars = {
            var: Affine(index.terms, lane_values(index, lanes.width)[lane])
            for var, index in vectors.items()
        }
        with e.bound(scalars):
            if mask is None:
                e.statement(stmt)
            else:
                bit = e.text.define(f"extractelement {mask.typed}, i64 {lane}")
                with e.only_if(bit, "lane", "next"):
                    e.statement(stmt)
    e.lanes, e.guards = lanes, guards


def _prefetch(e: Emitter, stmt: Prefetch) -> None:
    """Prefetch into the L2 cache, because panels are larger than the L1 cache."""
    place = e.places[stmt.buffer]
    size = stmt.buffer.dtype.bytes
    offset = e.index(stmt.offset)
    pointer = address(e, place, offset, size)
    name = e.module.declare("llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
    ahead = e.text.define(
        f"getelementptr i8, ptr {pointer}, i64 {lane_values(offset, 1)[0] * size}"
    )
    e.text.emit(f"call void @{name}(ptr {ahead}, i32 0, i32 2, i32 1)")


_LOOPS: Mapping[ForKind, Callable[[Any, For], None]] = {
    ForKind.SERIAL: serial_loop,
    ForKind.UNROLLED: _unrolled,
    ForKind.VECTORIZED: emit_vectorized,
    ForKind.PARALLEL: emit_parallel,
}

STATEMENTS: Mapping[type[Stmt], Callable[[Any, Any], None]] = {
    Seq: _seq,
    For: _for,
    If: _if,
    Let: _let,
    Alloc: _alloc,
    Store: _store,
    Prefetch: _prefetch,
}
