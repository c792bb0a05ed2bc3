"""Stores of a vector loop, and reductions of lanes that share an element."""

from __future__ import annotations

from ansorpy.codegen.c.arithmetic import binary, helper_call
from ansorpy.codegen.c.elements import element, variable_of
from ansorpy.codegen.c.emitter import Emitter
from ansorpy.codegen.c.expressions import narrowed, read
from ansorpy.codegen.c.vector.accesses import access, load, splat, store, vector_of
from ansorpy.codegen.c.vector.values import combined, mask, operand, vector
from ansorpy.codegen.clike.code import Code
from ansorpy.codegen.clike.operators import COMPOUND
from ansorpy.codegen.clike.sharing import sharing
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Const, Load, ReduceKind
from ansorpy.ir.loops import Store
from ansorpy.ir.rewrite.simplify import simplify_stmt

__all__ = ["vector_store"]


def vector_store(e: Emitter, s: Store) -> None:
    """Store or accumulate all lanes."""
    with sharing(e, s.value):
        if s.reduce is None:
            store(e, s, vector(e, s.value))
            return
        found = access(e, s.buffer, s.indices)
        if found.steps is None or len(set(found.steps)) < len(found.steps):
            _colliding(e, s, is_one=found.is_one_element)
            return
        name = variable_of(e, s.buffer, found.start)
        dtype = s.buffer.dtype
        if name is not None and s.reduce in COMPOUND and dtype.is_float and not dtype.is_half:
            e.line(f"{name} {COMPOUND[s.reduce]} {operand(e, s.value).text};")
            return
        old = load(e, Load(s.buffer, s.indices))
        store(e, s, combined(e, s.reduce, dtype, old, s.value))


def _colliding(e: Emitter, s: Store, *, is_one: bool) -> None:
    """Accumulate lanes that share elements: as a tree if all share one, else lane by lane."""
    assert s.reduce is not None
    dtype = s.buffer.dtype
    if not is_one or dtype is DType.BOOL:
        with e.in_one_lane() as lanes:
            for k in range(lanes.active):
                indices = tuple(lanes.in_lane(i, k) for i in s.indices)
                one = Store(s.buffer, indices, lanes.in_lane(s.value, k), s.reduce)
                e.statement(simplify_stmt(one, e.ranges))
        return
    total = _total(e, s.reduce, vector(e, s.value), s.value.dtype)
    with e.in_one_lane() as lanes:
        target = element(e, s.buffer, [lanes.in_lane(i, 0) for i in s.indices])
        found = binary(e, s.reduce.combiner, dtype, read(e, target, dtype), total)
        e.line(f"{target} = {narrowed(e, found, dtype).text};")


def _total(e: Emitter, kind: ReduceKind, value: Code, dtype: DType) -> Code:
    """Combine the active lanes into a scalar."""
    of_lanes, lanes = vector_of(e, dtype), e.vector
    if lanes.active < lanes.width:
        used = mask(e, [k < lanes.active for k in range(lanes.width)])
        rest = splat(e, e.value(Const(kind.identity(dtype), dtype)), dtype)
        value = helper_call(e, f"select_{of_lanes}", used, value, rest)
    return helper_call(e, f"{kind.value}_of_{of_lanes}", value)
