"""Find the tile that a reduction nest accumulates into, and its size in registers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import dropwhile

import numpy as np

from ansorpy.codegen.accesses import accesses, free_vars
from ansorpy.codegen.vectors import lanes_for
from ansorpy.ir.analysis.affine import Linear, linear
from ansorpy.ir.analysis.conditions import conjuncts
from ansorpy.ir.analysis.interval import extents_of
from ansorpy.ir.analysis.structural_equality import same_structure
from ansorpy.ir.expr import Compare, CompareOp, Expr, Var, has_load
from ansorpy.ir.extents import least, most
from ansorpy.ir.loops import (
    Alloc,
    Buffer,
    For,
    ForKind,
    If,
    Let,
    Scope,
    Seq,
    Stmt,
    Store,
    substatements,
    walk_stmts,
)
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.sizes import fixed
from ansorpy.target import Target

__all__ = ["Tile", "as_sequence", "falls", "find_tiles", "register_buffers", "same_region"]

_EXPANDED = (ForKind.UNROLLED, ForKind.VECTORIZED)


@dataclass(frozen=True)
class Tile:
    """A reducing store below a reduce loop, and the loops that span the region it writes.

    ``dims`` are unrolled and vectorized loops that index the region, vectorized ones last;
    ``lanes`` are vectorized loops over reduction axes, whose lanes accumulate separately.
    ``guards`` are conditions around the store that do not change while it accumulates; ``varying``
    are those that do, if the region may be out of bounds where no ``guards`` hold.
    ``around`` are vectorized loops outside the reduce loop: each of their lanes has its own tile.
    ``bare``: inside the outermost of ``dims`` and ``guards``, there are only loops and conditions
    around the store.
    """

    store: Store
    dims: tuple[For, ...]
    lanes: tuple[For, ...]
    guards: tuple[Expr, ...]
    varying: tuple[Expr, ...]
    around: tuple[For, ...]
    bare: bool

    @property
    def loops(self) -> tuple[For, ...]:
        """The loops to open around each element of the tile."""
        return (*self.dims, *self.lanes)

    @property
    def axes(self) -> tuple[For, ...]:
        """The loops that index the tile, vectorized ones last."""
        return (*self.loops, *self.around)

    @property
    def conditions(self) -> list[Expr]:
        """The conditions that ``guards`` are conjunctions of."""
        return [part for guard in self.guards for part in conjuncts(guard)]

    def vectors(self, target: Target) -> int:
        """Number of registers that the accumulators occupy."""
        scalars, in_lanes = 1, 1
        for loop in self.axes:
            if loop.kind is ForKind.VECTORIZED:
                in_lanes *= fixed(loop.extent)
            else:
                scalars *= fixed(loop.extent)
        return scalars * -(-in_lanes // lanes_for(self.store, target))


_Path = tuple[Stmt, ...]


def find_tiles(head: For, outer: Sequence[For]) -> Iterator[Tile]:
    """Yield the tiles of stores inside reduce loop *head*; *outer* are the loops around it."""
    if head.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
        return
    counts = Counter(buffer for inner in walk_stmts(head) for buffer, _ in accesses(inner))
    for store, path in _stores(head, ()):
        if store.reduce is not None and counts[store.buffer] == 1:
            yield from _tiles(store, path, outer)


def _stores(stmt: Stmt, path: _Path) -> Iterator[tuple[Store, _Path]]:
    if isinstance(stmt, Store):
        yield stmt, path
        return
    for inner in substatements(stmt):
        yield from _stores(inner, (*path, stmt))


def _tiles(store: Store, path: _Path, outer: Sequence[For]) -> Iterator[Tile]:
    loops = [s for s in path if isinstance(s, For)]
    indexing = free_vars(*store.indices)
    dims = [loop for loop in loops if loop.var in indexing]
    reduced = [loop for loop in loops if loop.var not in indexing]
    allocates = any(isinstance(s, Alloc) and s.buffer is store.buffer for s in path)
    lets = {s.var for s in path if isinstance(s, Let)}
    around = tuple(loop for loop in outer if loop.kind is ForKind.VECTORIZED)
    apart = all(loop.var in indexing for loop in around)
    if loops[0] in dims or allocates or lets & indexing or not apart:
        return
    if any(loop.kind not in _EXPANDED for loop in dims) or not _injective(store, dims):
        return
    lanes = tuple(loop for loop in reduced if loop.kind is ForKind.VECTORIZED)
    dims.sort(key=lambda loop: loop.kind is ForKind.VECTORIZED)
    if lanes and (around or any(loop.kind is ForKind.VECTORIZED for loop in dims)):
        return
    is_bare = _is_bare(path, dims)
    guards, varying = _guards(store, path, {loop.var for loop in reduced} | lets)
    if None not in varying and (guards or not varying):
        known = tuple(part for part in varying if part is not None)
        yield Tile(store, tuple(dims), lanes, guards, known, around, is_bare)
    if varying and _in_bounds(store, (*outer, *loops)):
        yield Tile(store, tuple(dims), lanes, (), (), around, is_bare)


def _is_bare(path: _Path, dims: Sequence[For]) -> bool:
    inner = dropwhile(lambda s: not isinstance(s, If) and s not in dims, path)
    return all(isinstance(s, For | If) for s in inner)


def _guards(
    store: Store, path: _Path, varying: set[Var]
) -> tuple[tuple[Expr, ...], tuple[Expr | None, ...]]:
    """Conditions around *store* that stay constant during accumulation, and those that vary.

    None stands for the negation of a condition.
    """
    found: list[Expr] = []
    others: list[Expr | None] = []
    for outer, inner in zip(path, (*path[1:], store), strict=True):
        if not isinstance(outer, If):
            continue
        if inner is outer.other:
            others.append(None)
        elif free_vars(outer.cond) & varying or has_load(outer.cond):
            others.append(outer.cond)
        else:
            found.append(outer.cond)
    return tuple(found), tuple(others)


def _in_bounds(store: Store, loops: Sequence[For]) -> bool:
    """Return whether the whole region is in bounds regardless of varying guards."""
    known = {loop.var: (0, loop.extent - 1) for loop in loops}
    for index, extent in zip(store.indices, store.buffer.shape, strict=True):
        if not free_vars(index) <= known.keys():
            return False
        low, high = extents_of(index, known)
        if least(low) < 0 or most(high - extent) >= 0:
            return False
    return True


def _injective(store: Store, dims: Sequence[For]) -> bool:
    """Return whether different iterations of *dims* write different elements."""
    if not dims:
        return True
    forms = [linear(index) for index in store.indices]
    variables = {loop.var for loop in dims}
    for form in forms:
        if any(not isinstance(a, Var) and free_vars(a) & variables for a in form.terms):
            return False
    extents = [fixed(loop.extent) for loop in dims]
    total = int(np.prod(extents, dtype=np.int64))
    if total > 1 << 14:
        return False
    points = np.indices(extents).reshape(len(dims), -1)
    touched = np.array([_along(form, dims, points) for form in forms], dtype=np.int64).reshape(
        len(forms), -1
    )
    return len(np.unique(touched, axis=1).T) == total


def _along(form: Linear, dims: Sequence[For], points: np.ndarray) -> np.ndarray:
    total = np.zeros(points.shape[1], np.int64)
    for loop, values in zip(dims, points, strict=True):
        total += form.terms.get(loop.var, 0) * values
    return total


def falls(part: Expr, loops: Set[Var]) -> bool:
    """Whether condition *part*, once false, stays false while *loops* go on."""
    if not free_vars(part) & loops:
        return True
    if not isinstance(part, Compare) or part.op not in (CompareOp.LT, CompareOp.LE):
        return False
    terms = linear(part.a - part.b).terms
    return all(
        isinstance(atom, Var) and c > 0 for atom, c in terms.items() if free_vars(atom) & loops
    )


def same_region(init: Stmt, tile: Tile) -> Store | None:
    """Rewrite *init*'s store over the tile's loops, if it initializes exactly the tile's region.

    For example ``for i, j: C[p + i, q + j] = 0`` before a tile that accumulates into
    ``C[p + i, q + j]``, both under the same guards.
    """
    loops: list[For] = []
    guards: list[Expr] = []
    while isinstance(init, For) or (isinstance(init, If) and init.other is None):
        if isinstance(init, For):
            loops.append(init)
            init = init.body
        else:
            guards.append(init.cond)
            init = init.then
    if not isinstance(init, Store) or init.reduce is not None or tile.lanes:
        return None
    ordered = [loop for loop in loops if loop.kind is not ForKind.VECTORIZED]
    ordered += [loop for loop in loops if loop.kind is ForKind.VECTORIZED]
    same = init.buffer is tile.store.buffer and len(ordered) == len(tile.dims)
    if not same or any(a.extent != b.extent for a, b in zip(ordered, tile.dims, strict=True)):
        return None
    renamed = {a.var: b.var for a, b in zip(ordered, tile.dims, strict=True)}
    if not _same_conditions([substitute(g, renamed) for g in guards], tile.guards):
        return None
    for mine, theirs in zip(init.indices, tile.store.indices, strict=True):
        if _renamed_terms(linear(mine), renamed) != linear(theirs):
            return None
    if free_vars(init.value) & renamed.keys() or has_load(init.value) or tile.around:
        return None
    return init


def _same_conditions(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    return len(a) == len(b) and all(same_structure(x, y) for x, y in zip(a, b, strict=True))


def _renamed_terms(form: Linear, renamed: Mapping[Var, Var]) -> Linear:
    terms = {
        renamed.get(atom, atom) if isinstance(atom, Var) else atom: coef
        for atom, coef in form.terms.items()
    }
    return Linear(terms, form.const)


def register_buffers(body: Stmt) -> set[Buffer]:
    """Local buffers whose indices are all constant after loop expansion; LLVM keeps these in
    registers by itself."""
    moving: set[Buffer] = set()
    local: set[Buffer] = set()

    def visit(stmt: Stmt, expanded: frozenset[Var]) -> None:
        if isinstance(stmt, Alloc) and stmt.buffer.scope is Scope.LOCAL:
            local.add(stmt.buffer)
        for buffer, indices in accesses(stmt):
            if not free_vars(*indices) <= expanded:
                moving.add(buffer)
        if isinstance(stmt, For) and stmt.kind in _EXPANDED:
            expanded = expanded | {stmt.var}
        for inner in substatements(stmt):
            visit(inner, expanded)

    visit(body, frozenset())
    return local - moving


def as_sequence(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements of a sequence, with nested ones flattened; a tuple of any other statement."""
    if not isinstance(stmt, Seq):
        return (stmt,)
    return tuple(inner for part in stmt.body for inner in as_sequence(part))
