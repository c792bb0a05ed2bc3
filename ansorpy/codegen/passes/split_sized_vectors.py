"""Vector loops over sizes as loops over whole vectors and a masked one, whose lengths are numbers::

    for j in 0..n  # vectorized        for j in 0..n//64
      out[j] = ...                       for lane in 0..64  # vectorized
                                           out[j * 64 + lane] = ...
                                -->    for j in n//64 * 4..n//16
                                         ... 16 lanes
                                       for lane in 0..16  # vectorized
                                         if n//16 * 16 + lane < n
                                           out[n//16 * 16 + lane] = ...

A loop that accumulates is masked as a whole if it is short, as its sums may be in registers.

A vector loop directly around or inside such a loop stays a vector only if it is the innermost one.
Code generators without masks get serial loops where lanes differ in a condition on sizes.
"""

from __future__ import annotations

from ansorpy.codegen.vectors import lanes_for
from ansorpy.ir.expr import Expr, Var, as_expr, walk
from ansorpy.ir.extents import Extent, least, most
from ansorpy.ir.loops import For, ForKind, If, Program, Seq, Stmt, Store, walk_stmts
from ansorpy.ir.rewrite.rewriter import map_statements, substitute
from ansorpy.target import Target

__all__ = ["split_sized_vectors", "split_vector"]

_VECTORS_A_STEP = 4
"""Vectors of one iteration, which hide the latency of elementwise functions."""


def split_sized_vectors(program: Program, target: Target, *, masked: bool) -> Program:
    """*program* without vector loops whose extents depend on dimensions.

    With *masked*, the elements after the last whole vector are the lanes of one with a condition.
    Otherwise they are computed one by one, and so is what lanes compute under different conditions.
    """
    if not program.dims:
        return program
    return program.with_body(_Split(target, masked).stmt(program.body))


def split_vector(loop: For, target: Target) -> Stmt:
    """A vector *loop* whose extent depends on dimensions, with the last vector masked."""
    return _Split(target, masked=True).stmt(loop)


class _Split:
    def __init__(self, target: Target, masked: bool) -> None:
        self.target = target
        self.masked = masked

    def stmt(self, s: Stmt) -> Stmt:
        """*s* with its vector loops split."""
        if isinstance(s, For) and s.kind is ForKind.VECTORIZED:
            return self._vector(s)
        return map_statements(s, self.stmt)

    def _vector(self, s: For) -> Stmt:
        body = self.stmt(s.body)
        is_inner = isinstance(s.body, For) and s.body.kind is ForKind.VECTORIZED
        if isinstance(s.extent, int):
            stays = body is s.body and (self.masked or not _differs(s))
            return For(s.var, s.extent, s.kind if stays else ForKind.SERIAL, body)
        if is_inner:
            return For(s.var, s.extent, ForKind.SERIAL, body)
        return self._split(s, body)

    def _split(self, s: For, body: Stmt) -> Stmt:
        lanes = lanes_for(body, self.target)
        long = lanes * _VECTORS_A_STEP
        if self.masked and most(s.extent) <= long and _accumulates(body):
            return self._rest(s, body, 0, -(-most(s.extent) // lanes) * lanes)
        parts: list[Stmt] = []
        done: Extent = 0
        for step in (long, lanes):
            count = s.extent // step - done // step
            if most(count) > 0:
                parts.append(self._whole(s, body, count, done, step))
                done = s.extent // step * step
        if most(s.extent - done) > 0:
            parts.append(self._rest(s, body, done, lanes))
        return Seq(tuple(parts))

    def _whole(self, s: For, body: Stmt, count: Extent, first: Extent, step: int) -> Stmt:
        """*count* times *step* iterations from number *first* on."""
        outer, lane = Var(s.var.name), Var(f"{s.var.name}.lane")
        at = outer * step + lane + as_expr(first)
        inner = For(lane, step, ForKind.VECTORIZED, substitute(body, {s.var: at}))
        return For(outer, count, ForKind.SERIAL, inner)

    def _rest(self, s: For, body: Stmt, first: Extent, lanes: int) -> Stmt:
        """The iterations from number *first* on, of which there are at most *lanes*."""
        lane = Var(f"{s.var.name}.lane")
        at: Expr = lane + as_expr(first)
        made = substitute(body, {s.var: at})
        if not self.masked:
            return For(lane, s.extent - first, ForKind.SERIAL, made)
        made = If(at < as_expr(s.extent), made, None)
        vector = For(lane, lanes, ForKind.VECTORIZED, made)
        some = as_expr(first) < as_expr(s.extent)
        return vector if least(s.extent - first) > 0 else If(some, vector, None)


def _accumulates(body: Stmt) -> bool:
    return any(isinstance(s, Store) and s.reduce is not None for s in walk_stmts(body))


def _differs(loop: For) -> bool:
    """Whether lanes of *loop* differ in a condition around what they compute."""
    conditions = (s.cond for s in walk_stmts(loop.body) if isinstance(s, If))
    return any(loop.var in walk(cond) for cond in conditions)
