"""Vector loops under guards: without masks where all lanes are needed, and no longer than needed.

A guard that only sizes decide limits the loop; otherwise there are two copies::

    for j in 0..64  # vectorized          for j in 0..min(64, n)  # vectorized
      if j < n                     -->      out[j] = ...
        out[j] = ...

    for j in 0..64  # vectorized          if b * 64 + 63 < n
      if b * 64 + j < n                     for j in 0..64  # vectorized
        out[b * 64 + j] = ...      -->        out[b * 64 + j] = ...
                                          else if b * 64 < n
                                            (as before)

Loops over register tiles keep their masks, as tiles have constant indices; so do single vectors.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from ansorpy.codegen.accesses import buffers_read, free_vars
from ansorpy.codegen.passes.limit_loops import iterations
from ansorpy.codegen.passes.split_sized_vectors import split_vector
from ansorpy.codegen.tiles import falls, register_buffers
from ansorpy.codegen.vectors import lanes_for
from ansorpy.ir.analysis.conditions import conjuncts
from ansorpy.ir.builders import all_of
from ansorpy.ir.expr import Expr, as_expr
from ansorpy.ir.extents import Extent, Symbolic, extreme
from ansorpy.ir.loops import Buffer, For, ForKind, If, Program, Stmt, Store
from ansorpy.ir.rewrite.rewriter import map_statements, substitute
from ansorpy.ir.sizes import fixed
from ansorpy.ir.symbols import SizeOp
from ansorpy.target import Target

__all__ = ["guarded_vectors"]


def guarded_vectors(program: Program, target: Target) -> Program:
    """*program* with fewer masks; only dimensions make lanes differ in guards."""
    if not program.dims:
        return program
    made = _Guarded(target, register_buffers(program.body)).stmt(program.body)
    return program.with_body(made)


@dataclass(frozen=True)
class _Guarded:
    target: Target
    in_registers: Set[Buffer]

    def stmt(self, s: Stmt) -> Stmt:
        """*s* with its guarded vector loops rewritten."""
        nest = _nest(s)
        if nest is None or self._touches_registers(nest.store):
            return map_statements(s, self.stmt)
        loop, end = nest.loop, nest.end()
        if end is not None:
            if fixed(loop.extent) <= lanes_for(nest.store, self.target):
                return s
            limited = For(loop.var, end, loop.kind, nest.store)
            return nest.around(split_vector(limited, self.target))
        whole = nest.around(For(loop.var, loop.extent, loop.kind, nest.store))
        return If(nest.holds(last=True), whole, If(nest.holds(last=False), s, None))

    def _touches_registers(self, store: Store) -> bool:
        return bool({store.buffer, *buffers_read(store)} & self.in_registers)


@dataclass(frozen=True)
class _Nest:
    """Unrolled loops, *outer*, around a vector *loop* around a *store* under the guards *parts*."""

    outer: tuple[For, ...]
    loop: For
    parts: Sequence[Expr]
    store: Store

    def end(self) -> Extent | None:
        """The number of iterations of the vector loop that are needed, if only sizes decide it."""
        end = self.loop.extent
        for part in self.parts:
            count = iterations(part, self.loop.var)
            if count is None:
                return None
            end = extreme(SizeOp.MIN, end, count)
        return end if isinstance(end, Symbolic) else None

    def holds(self, *, last: bool) -> Expr:
        """The condition that the guards hold in the *last* or in the first iteration."""
        loops = (*self.outer, self.loop)
        at = {loop.var: as_expr(fixed(loop.extent) - 1 if last else 0) for loop in loops}
        return substitute(all_of(*self.parts), at)

    def around(self, s: Stmt) -> Stmt:
        """*s* in the outer loops."""
        for loop in reversed(self.outer):
            s = For(loop.var, loop.extent, loop.kind, s)
        return s


def _nest(s: Stmt) -> _Nest | None:
    loops: list[For] = []
    while isinstance(s, For) and s.kind is ForKind.UNROLLED:
        loops.append(s)
        s = s.body
    if not isinstance(s, For) or s.kind is not ForKind.VECTORIZED or not isinstance(s.body, If):
        return None
    guard, store = s.body, s.body.then
    if guard.other is not None or not isinstance(store, Store) or store.reduce is not None:
        return None
    parts, dims = conjuncts(guard.cond), {loop.var for loop in (*loops, s)}
    suitable = all(s.var in free_vars(part) and falls(part, dims) for part in parts)
    return _Nest(tuple(loops), s, parts, store) if suitable else None
