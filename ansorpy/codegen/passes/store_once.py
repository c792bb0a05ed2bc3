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

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ansorpy.codegen.accesses import buffers_read, free_vars
from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.analysis.isl import decide
from ansorpy.ir.builders import all_of
from ansorpy.ir.expr import Binary, BinaryOp, Const, Expr
from ansorpy.ir.loops import For, ForKind, If, Program, Scope, Stmt, Store
from ansorpy.ir.prove.facts import Facts, Use
from ansorpy.ir.prove.sites import Site
from ansorpy.ir.rewrite.rewriter import map_statements, substitute

__all__ = ["stored_once"]

_SHARED = (Scope.GLOBAL, Scope.WORKSPACE)


@dataclass(frozen=True)
class _Shift:
    """An index into tiles that start at ``start``, or at ``last`` if that is earlier."""

    index: Expr
    start: Expr
    last: Const


def stored_once(program: Program) -> Program:
    """*program* with conditions around stores to overlapping tiles of parallel loops."""
    facts = Facts(program)
    places = Counter(site.stmt for site in facts.sites)
    shifted = {
        use.site.stmt: found
        for use in _written_only(facts)
        if isinstance(use.site.stmt, Store) and places[use.site.stmt] == 1
        if (found := _shifts(facts, use))
    }
    if not shifted:
        return program
    return program.with_body(_guarded(program.body, shifted))


def _written_only(facts: Facts) -> Iterator[Use]:
    """Uses of shared buffers that a parallel loop writes and does not read."""
    for region, buffers in facts.regions.items():
        read = buffers_read(region.loop)
        for buffer, uses in buffers.items():
            if buffer.scope in _SHARED and buffer not in read:
                yield from uses


def _shifts(facts: Facts, use: Use) -> list[_Shift]:
    """The shifted tiles that a store writes; none if others than their owners must store too."""
    store, site = use.site.stmt, use.site
    if not isinstance(store, Store) or store.reduce is not None:
        return []
    found = [shift for index in store.indices for shift in _of_index(index, site)]
    return found if found and _keeps_all(facts, use, found) else []


def _of_index(index: Expr, site: Site) -> Iterator[_Shift]:
    threads = {var for _, var in site.parallel}
    for atom, step in linear(substitute(index, site.values)).terms.items():
        match atom:
            case Binary(BinaryOp.MIN, start, Const() as last) if step == 1:
                if free_vars(start) & threads:
                    yield _Shift(index, start, last)


def _owns(shifts: Sequence[_Shift]) -> Expr:
    """Condition that no earlier tile covers the element."""
    return all_of(*(shift.index >= shift.start for shift in shifts))


def _keeps_all(facts: Facts, use: Use, shifts: Sequence[_Shift]) -> bool:
    """True if every element that a store writes is still written when only owners store it."""
    site, access = use.site, use.access
    outside = [var for level, var in site.serial if level < len(_region_of(use))]

    def is_equal() -> bool:
        before = facts.relations.elements(site, access, (), outside)
        only_owners = replace(access, conditions=(*access.conditions, _owns(shifts)))
        after = facts.relations.elements(site, only_owners, (), outside)
        is_exact = before.exact and after.exact
        return is_exact and bool(before.map.range().is_equal(after.map.range()))

    return decide(is_equal) is True


def _region_of(use: Use) -> tuple[int, ...]:
    assert use.site.region is not None
    return use.site.region.position


def _guarded(s: Stmt, shifted: dict[Store, list[_Shift]]) -> Stmt:
    """Split loops around one store of a shifted tile: unshifted tiles, then shifted ones."""
    loops: list[For] = []
    store = s
    while isinstance(store, For) and store.kind is not ForKind.PARALLEL:
        loops.append(store)
        store = store.body
    if not isinstance(store, Store) or store not in shifted:
        return map_statements(s, lambda part: _guarded(part, shifted))
    shifts = shifted[store]
    others: Stmt = If(_owns(shifts), store, None)
    for loop in reversed(loops):
        others = For(loop.var, loop.extent, loop.kind, others)
    return If(all_of(*(shift.start <= shift.last for shift in shifts)), s, others)
