"""Prefetch constants: while one panel is read repeatedly, the next one is brought to the cache.

A nest that iterates over rows in the outer loop and over a panel of packed constants in the inner
one waits for memory in its first pass over each panel and leaves the bandwidth idle in all others.
With this pass, every step prefetches its share of the next panel, so that the transfer is spread
over the arithmetic.  Source: the "next panel" prefetch of Goto and van de Geijn (2008, section 6).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansorpy.ir.analysis.affine import Linear, linear
from ansorpy.ir.expr import Expr, Load, as_expr, walk
from ansorpy.ir.extents import Symbolic
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

_UNROLLED = (ForKind.UNROLLED, ForKind.VECTORIZED)


def prefetch_constants(program: Program, target: Target) -> Program:
    """*program* with prefetches for the constants that its nests read panel by panel."""
    constants = frozenset(p.buffer for p in program.params if p.role is Role.CONSTANT)
    if not constants:
        return program
    body = _Rewriter(constants, target).stmt(program.body, ())
    return program if body is program.body else Program(program.name, program.params, body)


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
        panel = _panel(offset, loops)
        if panel is None or panel.elements * buffer.dtype.bytes > self.target.l2_bytes // 2:
            return ()
        share = -(-panel.elements // panel.steps)
        line = self.target.cache_line_bytes // buffer.dtype.bytes
        first = panel.start.to_expr() + panel.step * share
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
class _Panel:
    """Constants read again in each pass: their size, the start of the next panel, the step."""

    elements: int
    start: Linear
    step: Expr
    steps: int


def _panel(offset: Linear, loops: Sequence[For]) -> _Panel | None:
    """The panel that the innermost of *loops* reads.

    None if no other panel follows it, or if its size or the number of passes over it depends on
    sizes of dimensions.
    """
    left = [*(loop for loop in loops[:-1] if loop.extent != 1), loops[-1]]
    along, again = [], []
    elements = abs(offset.terms.get(left[-1].var, 0))
    while left and offset.terms.get(left[-1].var, 0) == elements != 0:
        along.append(left.pop())
        elements *= along[-1].extent
    while left and left[-1].var not in offset.terms:
        again.append(left.pop())
    order = [*reversed(again), *reversed(along)]
    is_sized = any(isinstance(loop.extent, Symbolic) for loop in order)
    if is_sized or not along or not left or math.prod(loop.extent for loop in again) == 1:
        return None
    step: Expr = as_expr(0)
    for loop in order:
        step = step * loop.extent + loop.var
    outside: set[Expr] = {loop.var for loop in left}
    kept = {var: c for var, c in offset.terms.items() if var in outside}
    start = Linear(kept, offset.const + offset.terms[left[-1].var])
    return _Panel(elements, start, step, math.prod(fixed(loop.extent) for loop in order))
