"""Give each element a single writer, so that iterations of parallel loops never store the same one.

The last tile of an axis may start early, so that it is a full tile, and then recomputes part of the
previous tile.  Two threads then store the same values at once, which is harmless on every machine
but still a data race in C.  After this pass, only the first tile that covers an element stores it::

    for i.0 in 0..3  # parallel               for i.0 in 0..3  # parallel
      i.start = min(i.0 * 5, 8)                 i.start = min(i.0 * 5, 8)
      for i.1 in 0..5                           if i.0 * 5 <= 8
        Y[i.start + i.1] = ...        -->         for i.1 in 0..5
                                                    Y[i.start + i.1] = ...
                                                else
                                                  for i.1 in 0..5
                                                    if i.start + i.1 >= i.0 * 5
                                                      Y[i.start + i.1] = ...
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ansorpy.codegen.storage import buffers_read, buffers_used
from ansorpy.codegen.tiles import free_vars
from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.analysis.isl import Domain, Relation, decide
from ansorpy.ir.builders import all_of
from ansorpy.ir.expr import Binary, BinaryOp, Call, Const, Expr, Function, Load, Var, walk
from ansorpy.ir.loops import (
    Buffer,
    For,
    ForKind,
    If,
    Let,
    Program,
    Scope,
    Stmt,
    Store,
    expressions,
    substatements,
)
from ansorpy.ir.rewrite.rewriter import map_statements, substitute

__all__ = ["conflicting_loops", "stored_once"]

_SHARED = (Scope.GLOBAL, Scope.WORKSPACE)


@dataclass(frozen=True)
class _Place:
    """Context of a statement: the loops around it, the values of variables, and conditions.

    ``threads`` are the variables of parallel loops; ``instances`` are the variables of the loops
    outside of them.  Equal values of ``instances`` belong to one execution of the parallel loops.
    """

    loops: Mapping[Var, int] = field(default_factory=dict)
    values: Mapping[Var, Expr] = field(default_factory=dict)
    conditions: tuple[Expr, ...] = ()
    threads: tuple[Var, ...] = ()
    instances: tuple[Var, ...] = ()

    def inside(self, s: Stmt, part: Stmt) -> _Place:
        """The context of *part*, a direct substatement of *s*."""
        match s:
            case For(var, extent, kind, _):
                loops = {**self.loops, var: extent}
                if kind is ForKind.PARALLEL:
                    return replace(self, loops=loops, threads=(*self.threads, var))
                outside = () if self.threads else (var,)
                return replace(self, loops=loops, instances=(*self.instances, *outside))
            case Let(var, value, _):
                return replace(self, values={**self.values, var: substitute(value, self.values)})
            case If(cond, then, _):
                held = cond if part is then else Call(Function.NOT, (cond,))
                return replace(self, conditions=(*self.conditions, held))
            case _:
                return self

    def relation(
        self, buffer: Buffer, indices: Sequence[Expr], conditions: Sequence[Expr] = ()
    ) -> Relation:
        """The relation from threads to instances and to the elements of *buffer* at *indices*."""
        held = (*self.conditions, *conditions)
        roots = [substitute(root, self.values) for root in (*indices, *held)]
        used = {*self.threads, *self.instances}.union(*(free_vars(root) for root in roots))
        domain = Domain({var: n for var, n in self.loops.items() if var in used}, None, self.values)
        given = domain.access(self.threads, (0,) * len(self.threads))
        shape = (*(0 for _ in self.instances), *buffer.shape)
        found = domain.access((*self.instances, *indices), shape, conditions=held)
        return Relation(given.map.reverse().apply_range(found.map), found.exact)


def stored_once(program: Program) -> Program:
    """*program* with conditions around stores to overlapping tiles of parallel loops."""
    body = _Owners().stmt(program.body, _Place())
    return program if body is program.body else replace(program, body=body)


class _Owners:
    def __init__(self) -> None:
        self.read: frozenset[Buffer] = frozenset()

    def stmt(self, s: Stmt, place: _Place) -> Stmt:
        if isinstance(s, For) and s.kind is ForKind.PARALLEL and not place.threads:
            self.read = buffers_read(s)
        if place.threads:
            owned = self._nest(s, place)
            if owned is not None:
                return owned
        return map_statements(s, lambda part: self.stmt(part, place.inside(s, part)))

    def _nest(self, s: Stmt, place: _Place) -> Stmt | None:
        """Split loops around one store of a shifted tile: unshifted tiles, then shifted ones."""
        loops, store, inner = [], s, place
        while isinstance(store, For) and store.kind is not ForKind.PARALLEL:
            loops.append(store)
            inner, store = inner.inside(store, store.body), store.body
        if not isinstance(store, Store) or store.reduce is not None:
            return None
        if store.buffer.scope not in _SHARED or store.buffer in self.read:
            return None
        shifted = [(index, *found) for index in store.indices for found in _shifts(index, inner)]
        own = [index >= start for index, start, _ in shifted]
        if not own or not _keeps_all(store, inner, own):
            return None
        guarded: Stmt = If(all_of(*own), store, None)
        for loop in reversed(loops):
            guarded = For(loop.var, loop.extent, loop.kind, guarded)
        return If(all_of(*(start <= last for _, start, last in shifted)), s, guarded)


def _shifts(index: Expr, place: _Place) -> Iterator[tuple[Expr, Const]]:
    """The unshifted tile starts in *index*, each with the last start that is not shifted."""
    for atom, step in linear(substitute(index, place.values)).terms.items():
        match atom:
            case Binary(BinaryOp.MIN, start, Const() as last) if step == 1:
                if free_vars(start) & {*place.threads}:
                    yield start, last


def _keeps_all(store: Store, place: _Place, own: Sequence[Expr]) -> bool:
    """True if every element that *store* writes is still written when only owners store it."""

    def is_equal() -> bool:
        before, after = (place.relation(store.buffer, store.indices, c) for c in ((), own))
        is_exact = before.exact and after.exact
        return is_exact and bool(before.map.range().is_equal(after.map.range()))

    return decide(is_equal) is True


def conflicting_loops(program: Program) -> frozenset[For]:
    """The outermost parallel loops that isl cannot prove free of conflicts.

    Two iterations, of such a loop and the parallel loops directly in it, conflict if they access
    the same element and at least one of them writes it.
    """
    return frozenset(_conflicting(program.body, _Place()))


def _conflicting(s: Stmt, place: _Place) -> Iterator[For]:
    if isinstance(s, For) and s.kind is ForKind.PARALLEL:
        uses = _Uses({b for b, is_written in buffers_used(s).items() if is_written})
        uses.collect(s, place)
        if any(decide(partial(_are_apart, found)) is not True for found in uses.found.values()):
            yield s
        return
    for part in substatements(s):
        yield from _conflicting(part, place.inside(s, part))


@dataclass
class _Uses:
    """Collects accesses to the shared buffers in *written*, and whether each is a write."""

    written: set[Buffer]
    found: dict[Buffer, list[tuple[Relation, bool]]] = field(default_factory=dict)

    def collect(self, s: Stmt, place: _Place) -> None:
        for root in expressions(s):
            for e in walk(root):
                if isinstance(e, Load) and isinstance(e.source, Buffer):
                    self._add(e.source, e.indices, place, is_write=False)
        if isinstance(s, Store):
            self._add(s.buffer, s.indices, place, is_write=True)
        for part in substatements(s):
            self.collect(part, place.inside(s, part))

    def _add(
        self, buffer: Buffer, indices: Sequence[Expr], place: _Place, *, is_write: bool
    ) -> None:
        if buffer in self.written and buffer.scope in _SHARED:
            use = place.relation(buffer, indices), is_write
            self.found.setdefault(buffer, []).append(use)


def _are_apart(uses: Sequence[tuple[Relation, bool]]) -> bool:
    for n, (one, writes) in enumerate(uses):
        if writes and not one.map.is_injective():
            return False
        for other, also_writes in uses[n + 1 :]:
            if writes or also_writes:
                pairs = one.map.apply_range(other.map.reverse())
                if not (pairs - pairs.identity(pairs.get_space())).is_empty():
                    return False
    return True
