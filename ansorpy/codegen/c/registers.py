"""Turn register tiles into variables, which C compilers keep in registers more often than arrays.

Loops that index a tile are unrolled, so that each element of the tile has a name::

    float acc[2];                              float acc_0, acc_1;
    for (k = 0; k < 8; ++k)                    for (k = 0; k < 8; ++k) {
      for (i = 0; i < 2; ++i)          -->       acc_0 += a[k] * b[k];
        acc[i] += a[i * 8 + k] * b[k];           acc_1 += a[8 + k] * b[k];
                                               }
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ansorpy.codegen.accesses import accesses, free_vars
from ansorpy.codegen.tiles import as_sequence, register_buffers
from ansorpy.codegen.vectors import VectorSpace, chunks, loop_lanes, vector_space
from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.expr import Var, as_expr
from ansorpy.ir.extents import least
from ansorpy.ir.loops import (
    Alloc,
    Buffer,
    For,
    ForKind,
    If,
    Let,
    Program,
    Seq,
    Stmt,
    Store,
    substatements,
    walk_stmts,
)
from ansorpy.ir.rewrite.rewriter import map_statements, substitute
from ansorpy.ir.sizes import fixed
from ansorpy.target import Target

__all__ = ["Piece", "variables", "vector_plan", "written_out"]

MOST_VARIABLES = 64
"""Maximum number of variables of a tile: as many vectors as two register files hold."""
_MOST_COPIES = 256
"""Maximum number of stores after unrolling the loops of one nest."""


def written_out(program: Program, *, vectors: bool) -> Program:
    """*program* with those unrolled loops expanded that index register tiles.

    Without *vectors*, tiles with lanes keep their loops, which compilers may vectorise.
    """
    tiles = _tiles(program.body, vectors=vectors)
    body = _WrittenOut(tiles).stmt(program.body) if tiles else program.body
    return program.with_body(body)


def _tiles(body: Stmt, *, vectors: bool) -> set[Buffer]:
    """The register tiles whose accesses make few enough copies when unrolled."""
    tiles = {
        b
        for b in register_buffers(body)
        if least(b.size) <= MOST_VARIABLES * (16 if vectors else 1)
    }
    copies: Counter[Buffer] = Counter()

    def visit(s: Stmt, loops: tuple[For, ...]) -> None:
        if isinstance(s, For):
            loops = (*loops, s)
        for buffer, indices in accesses(s):
            if buffer not in tiles:
                continue
            used = free_vars(*indices)
            indexing = [loop for loop in loops if loop.var in used]
            lanes = [loop for loop in indexing if loop.kind is ForKind.VECTORIZED]
            if lanes and not vectors:
                tiles.discard(buffer)
            number = 1
            for loop in indexing:
                number *= 1 if loop in lanes else loop.extent
            copies[buffer] = max(copies[buffer], number)
        for part in substatements(s):
            visit(part, loops)

    visit(body, ())
    return {buffer for buffer in tiles if copies[buffer] <= MOST_VARIABLES}


class _WrittenOut:
    """Replaces unrolled loops that index one of *tiles* by one copy of the body per iteration."""

    def __init__(self, tiles: set[Buffer]) -> None:
        self.tiles = tiles

    def stmt(self, s: Stmt) -> Stmt:
        new = map_statements(s, self.stmt)
        if not isinstance(new, For) or new.kind is not ForKind.UNROLLED or not self._indexes(new):
            return new
        parts: list[Stmt] = []
        for step in range(fixed(new.extent)):
            parts += as_sequence(substitute(new.body, {new.var: as_expr(step)}))
        return Seq(tuple(parts))

    def _indexes(self, loop: For) -> bool:
        stores = sum(isinstance(s, Store) for s in walk_stmts(loop.body))
        return stores * loop.extent <= _MOST_COPIES and any(
            buffer in self.tiles and loop.var in free_vars(*indices)
            for s in walk_stmts(loop.body)
            for buffer, indices in accesses(s)
        )


class Piece(NamedTuple):
    """Neighbouring elements of a tile in one variable of *width* lanes; *used* lanes are in use."""

    width: int
    used: int


def variables(body: Stmt, lanes: Mapping[Var, int]) -> dict[Buffer, dict[int, Piece]]:
    """The tiles whose elements are variables, by the offset of the first element of each.

    *lanes* has the number of lanes of each vector loop, by its variable (the outermost variable of
    nested loops); loops not listed are scalar.
    """
    found: dict[Buffer, dict[int, Piece]] = {b: {} for b in register_buffers(body)}
    refused: set[Buffer] = set()
    for buffer, pieces in _pieces(body, lanes):
        held = found.get(buffer)
        if held is None:
            continue
        if pieces is None or any(held.setdefault(at, piece) != piece for at, piece in pieces):
            refused.add(buffer)
    return {
        buffer: dict(sorted(held.items()))
        for buffer, held in found.items()
        if buffer not in refused and 0 < len(held) <= MOST_VARIABLES and _are_apart(held)
    }


def _are_apart(held: Mapping[int, Piece]) -> bool:
    ordered = sorted(held.items())
    return all(at + piece.used <= after for (at, piece), (after, _) in itertools.pairwise(ordered))


def _pieces(
    s: Stmt, lanes: Mapping[Var, int], space: VectorSpace | None = None, width: int = 1
) -> Iterator[tuple[Buffer, list[tuple[int, Piece]] | None]]:
    """The pieces of each buffer accessed at once, with their offsets; None where offsets vary."""
    if isinstance(s, For) and s.kind is ForKind.VECTORIZED and space is None and s.var in lanes:
        space, width = vector_space(s), lanes[s.var]
    for buffer, indices in accesses(s):
        form = linear(buffer.offset(indices))
        if not form.terms:
            yield buffer, [(form.const, Piece(1, 1))]
        elif space is not None and len(space.loops) == 1 and form.terms == {space.loops[0][0]: 1}:
            parts = chunks(space.extent, width)
            yield buffer, [(form.const + c.start, Piece(c.width, c.active)) for c in parts]
        else:
            yield buffer, None
    for part in substatements(s):
        yield from _pieces(part, lanes, space, width)


def vector_plan(
    body: Stmt, target: Target | None
) -> tuple[dict[Var, int], dict[Buffer, dict[int, Piece]]]:
    """Decide which loops become vectors, with their lanes, and which register tiles variables.

    Without a *target*, no loop becomes vectors.
    """
    if target is None:
        return {}, variables(body, {})
    lanes = {var: n for var, n in _alike(body, loop_lanes(body, target)).items() if n > 1}
    while True:
        tiles = variables(body, lanes)
        scalar = {
            s.var
            for s in walk_stmts(body)
            if isinstance(s, For) and s.var in lanes and not _is_vectorisable(s, tiles)
        }
        if not scalar:
            return lanes, tiles
        lanes = {var: n for var, n in lanes.items() if var not in scalar}


def _is_vectorisable(loop: For, tiles: Mapping[Buffer, object]) -> bool:
    """False if a condition differs between lanes, or lanes would share an array inside."""
    space = vector_space(loop)
    varying = {var for var, _ in space.loops}
    for s in walk_stmts(space.body):
        if isinstance(s, Let) and free_vars(s.value) & varying:
            varying.add(s.var)
        if isinstance(s, If) and free_vars(s.cond) & varying:
            return False
        if isinstance(s, Alloc) and s.buffer not in tiles:
            return False
    return True


def _alike(body: Stmt, lanes: Mapping[Var, int]) -> dict[Var, int]:
    """*lanes* reduced so that all loops over one tile cut it into the same vectors."""
    found = dict(lanes)
    loops: dict[Buffer, set[Var]] = {buffer: set() for buffer in register_buffers(body)}
    for s in walk_stmts(body):
        if isinstance(s, For) and s.var in lanes:
            for inner in walk_stmts(s):
                for buffer, _ in accesses(inner):
                    loops.get(buffer, set()).add(s.var)
    changed = True
    while changed:
        changed = False
        for sharing in loops.values():
            fewest = min((found[var] for var in sharing), default=1)
            for var in sharing:
                changed = changed or found[var] != fewest
                found[var] = fewest
    return found
