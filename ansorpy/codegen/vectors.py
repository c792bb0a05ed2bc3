"""Split vectorized loops into vectors of the target's width."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from ansorpy.ir.expr import Cast, Expr, Load, Var, walk
from ansorpy.ir.loops import For, ForKind, If, Let, Stmt, Store, walk_stmts
from ansorpy.ir.sizes import fixed
from ansorpy.ir.tensor import ComputeOp
from ansorpy.target import Target

__all__ = [
    "Chunk", "VectorSpace", "bits_of", "chunks", "lanes_for", "lanes_of", "loop_lanes",
    "vector_space",
]  # fmt: skip


@dataclass(frozen=True)
class VectorSpace:
    """Directly nested vectorized loops as one iteration space, and their body."""

    loops: tuple[tuple[Var, int], ...]
    body: Stmt

    @property
    def extent(self) -> int:
        return prod(extent for _, extent in self.loops)


@dataclass(frozen=True)
class Chunk:
    """Iterations ``start .. start + active - 1``, computed in *width* lanes."""

    start: int
    width: int
    active: int


def vector_space(loop: For) -> VectorSpace:
    """Collapse *loop* and the vectorized loops directly inside it."""
    loops: list[tuple[Var, int]] = []
    body: Stmt = loop
    while isinstance(body, For) and body.kind is ForKind.VECTORIZED:
        loops.append((body.var, fixed(body.extent)))
        body = body.body
    return VectorSpace(tuple(loops), body)


def lane_bits(*exprs: Expr) -> int:
    """Width of a lane that holds the widest element read or converted in *exprs*, at least 8.

    Loop variables do not count.
    """
    found = (e.dtype.lane_bits for x in exprs for e in walk(x) if isinstance(e, Load | Cast))
    return max(found, default=8)


@lru_cache(maxsize=4096)
def bits_of(op: ComputeOp) -> int:
    """Lane width in bits when a loop over elements of *op* is vectorised."""
    return max(op.dtype.lane_bits, lane_bits(op.body))


def lanes_of(op: ComputeOp, target: Target) -> int:
    """Number of lanes when a loop over elements of *op* is vectorised."""
    return target.lanes(bits_of(op))


def lanes_for(body: Stmt, target: Target) -> int:
    """Number of lanes of one register for the widest element computed in *body*."""
    bits = 8
    for stmt in walk_stmts(body):
        if isinstance(stmt, Store):
            bits = max(bits, stmt.buffer.dtype.lane_bits, lane_bits(stmt.value))
        elif isinstance(stmt, If):
            bits = max(bits, lane_bits(stmt.cond))
        elif isinstance(stmt, Let):
            bits = max(bits, lane_bits(stmt.value))
    return target.lanes(bits)


def loop_lanes(body: Stmt, target: Target) -> dict[Var, int]:
    """Number of lanes of each vectorized loop in *body*, by its variable."""
    return {
        loop.var: lanes_for(vector_space(loop).body, target)
        for loop in walk_stmts(body)
        if isinstance(loop, For) and loop.kind is ForKind.VECTORIZED
    }


def chunks(extent: int, lanes: int) -> list[Chunk]:
    """Split *extent* into full vectors and a remainder chunk, whose width is a power of two.

    >>> chunks(40, 16)[-1], chunks(7, 16)
    (Chunk(start=32, width=8, active=8), [Chunk(start=0, width=8, active=7)])
    """
    full = [Chunk(start, lanes, lanes) for start in range(0, extent - lanes + 1, lanes)]
    left = extent - len(full) * lanes
    if not left:
        return full
    return [*full, Chunk(extent - left, 1 << (left - 1).bit_length(), left)]
