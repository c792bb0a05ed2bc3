"""Prefetch constants: while one panel is read repeatedly, the next one is brought to the cache.

A nest that iterates over rows in the outer loop and over a panel of packed constants in the inner
one waits for memory in its first pass over each panel and leaves the bandwidth idle in all others.
With this pass, every step prefetches its share of the next panel, so that the transfer is spread
over the arithmetic.  Source: the "next panel" prefetch of Goto and van de Geijn (2008, section 6).

Constants that are read once, in the order in which they lie, are prefetched some way ahead: the
hardware stops at the end of each page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansorpy.ir.analysis.affine import Linear, linear
from ansorpy.ir.expr import Expr, Load, Var, as_expr, walk
from ansorpy.ir.extents import Symbolic, least, most
from ansorpy.ir.loops import (
    Buffer,
    For,
    ForKind,
    Prefetch,
    Program,
    Role,
    Seq,
    Stmt,
    Store,
    substatements,
)
from ansorpy.ir.rewrite.rewriter import map_statements
from ansorpy.ir.sizes import fixed
from ansorpy.target import Target

__all__ = ["prefetch_constants"]

_AHEAD_BYTES = 8192
"""How far ahead of their use constants are prefetched that are read once."""

_UNROLLED = (ForKind.UNROLLED, ForKind.VECTORIZED)


def prefetch_constants(program: Program, target: Target) -> Program:
    """*program* with prefetches for the constants that its nests read panel by panel."""
    constants = frozenset(p.buffer for p in program.params if p.role is Role.CONSTANT)
    if not constants:
        return program
    return program.with_body(_Rewriter(constants, target).stmt(program.body, ()))


@dataclass(frozen=True)
class _Rewriter:
    constants: frozenset[Buffer]
    target: Target

    def stmt(self, s: Stmt, outer: tuple[For, ...]) -> Stmt:
        if not isinstance(s, For):
            return map_statements(s, lambda part: self.stmt(part, outer))
        loops = (*outer, s)
        inside = self.stmt(s.body, loops)
        asked = self._asked(loops) if s.kind is ForKind.SERIAL else ()
        if asked:
            inside = Seq((*asked, inside))
        return s if inside is s.body else For(s.var, s.extent, s.kind, inside)

    def _asked(self, loops: tuple[For, ...]) -> tuple[Stmt, ...]:
        """Prefetches for the body of the innermost of *loops*."""
        found: dict[Buffer, tuple[Stmt, ...]] = {}
        inner: set[Expr] = set()
        for load in _streamed(loops[-1].body, inner):
            source = load.source
            if isinstance(source, Buffer) and source in self.constants and source not in found:
                offset = linear(source.offset(load.indices))
                found[source] = self._ahead(source, offset, loops, inner)
        return tuple(p for parts in found.values() for p in parts)

    def _ahead(
        self, buffer: Buffer, offset: Linear, loops: Sequence[For], inner: set[Expr]
    ) -> tuple[Stmt, ...]:
        if set(offset.terms) - inner - {loop.var for loop in loops}:
            return ()
        order = _order(offset, loops)
        if order is None:
            return ()
        line = self.target.cache_line_bytes // buffer.dtype.bytes
        if math.prod(order.passes) == 1:
            if most(buffer.bytes) <= _AHEAD_BYTES:
                return ()
            share, ahead = abs(offset.terms[loops[-1].var]), _AHEAD_BYTES // buffer.dtype.bytes
            used = {loop.var for loop in loops}
            first = order.start(offset, used).to_expr() + ahead
        else:
            panel = order.elements(offset)
            if not order.left or panel * buffer.dtype.bytes > self.target.l2_bytes // 2:
                return ()
            share = -(-panel // order.steps)
            following = order.start(offset, {loop.var for loop in order.left})
            step = offset.terms[order.left[-1].var]
            first = following.to_expr() + step + order.number() * share
        return tuple(Prefetch(buffer, first + part * line) for part in range(-(-share // line)))


def _streamed(s: Stmt, inner: set[Expr]) -> Iterator[Load]:
    """Loads of one step of the loop around *s*; variables of loops within a step are added to
    *inner*."""
    if isinstance(s, For):
        if s.kind not in _UNROLLED:
            return
        inner.add(s.var)
    if isinstance(s, Store):
        yield from (e for e in walk(s.value) if isinstance(e, Load))
    for part in substatements(s):
        yield from _streamed(part, inner)


@dataclass(frozen=True)
class _Order:
    """The order in which loops read a panel of constants: *along* it, *again* and *again*.

    Args:
        left: The loops around these.
        passes: How often each loop of *again* reads it, at least.
    """

    along: Sequence[For]
    again: Sequence[For]
    left: Sequence[For]
    passes: Sequence[int]

    @property
    def _counts(self) -> list[int]:
        return [*self.passes, *(fixed(loop.extent) for loop in self.along)]

    @property
    def steps(self) -> int:
        """The number of steps in which the panel is read as often as is known."""
        return math.prod(self._counts)

    def number(self) -> Expr:
        """The number of a step."""
        found: Expr = as_expr(0)
        for loop, count in zip((*self.again, *self.along), self._counts, strict=True):
            found = found * count + loop.var
        return found

    def elements(self, offset: Linear) -> int:
        """The elements of the panel."""
        each = abs(offset.terms[self.along[-1].var])
        return each * math.prod(fixed(loop.extent) for loop in self.along)

    @staticmethod
    def start(offset: Linear, used: set[Var]) -> Linear:
        """The part of *offset* that the loops over *used* decide."""
        return Linear({var: c for var, c in offset.terms.items() if var in used}, offset.const)


def _order(offset: Linear, loops: Sequence[For]) -> _Order | None:
    """How the innermost of *loops* reads constants at *offset*.

    None if they are not one after another, or if how many they are depends on dimensions.
    """
    left = [*(loop for loop in loops[:-1] if loop.extent != 1), loops[-1]]
    along, again = [], []
    elements = abs(offset.terms.get(left[-1].var, 0))
    while left and offset.terms.get(left[-1].var, 0) == elements != 0:
        along.append(left.pop())
        elements *= along[-1].extent
    while left and left[-1].var not in offset.terms:
        again.append(left.pop())
    if not along or any(isinstance(loop.extent, Symbolic) for loop in along):
        return None
    again.reverse()
    return _Order(along[::-1], again, left, [max(1, least(loop.extent)) for loop in again])
