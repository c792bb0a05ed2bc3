"""Turn strided reads into contiguous loads and a transposition in registers.

If an unrolled loop walks over adjacent elements and a vector loop over rows, as in

    for c in 0..16 (unrolled): for v in 0..16 (vectorized): T[c, v] = A[v, c]

then 16 vectors are loaded along the rows, one per lane, and four rounds of two-vector shuffles turn
them into the vectors along ``v``.  That takes one or two instructions per element fewer than a
gather.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ansorpy.codegen.llvm.emit.accesses import Access, access, load_rows
from ansorpy.codegen.llvm.emit.affine import Affine, constant, lane_values
from ansorpy.codegen.llvm.emit.shuffles import shuffled
from ansorpy.codegen.llvm.emit.text import Value
from ansorpy.codegen.vectors import vector_space
from ansorpy.ir.expr import Load, Select, Var, walk
from ansorpy.ir.loops import Buffer, For, ForKind, Store
from ansorpy.ir.sizes import fixed

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emit.emitter import Emitter

__all__ = ["Block", "load_transposed", "transposes"]

_BLOCK_BYTES = 16
"""Bytes of the blocks in which in-lane shuffles work, at any vector width."""


@dataclass(slots=True)
class Block:
    """An unrolled loop around a chunk of lanes, at iteration *step*.

    ``conditional`` are the loads that some iterations may skip, and ``vectors`` holds the values
    that each load read for each group of iterations (one per lane).
    """

    var: Var
    extent: int
    conditional: frozenset[Load]
    step: int = 0
    vectors: dict[tuple[Load, int], list[Value]] = field(default_factory=dict)

    @staticmethod
    def of(loop: For) -> Block:
        """The block of *loop*, for which :func:`transposes` holds, at its first iteration."""
        inner = loop.body
        assert isinstance(inner, For)
        store = vector_space(inner).body
        assert isinstance(store, Store)
        branches = [
            b for e in walk(store.value) if isinstance(e, Select) for b in (e.then, e.other)
        ]
        skipped = (e for branch in branches for e in walk(branch) if isinstance(e, Load))
        return Block(loop.var, fixed(loop.extent), frozenset(skipped))


def transposes(loop: For) -> bool:
    """True for an unrolled loop whose elements are independent and may be read in blocks."""
    inner = loop.body
    if not isinstance(inner, For) or inner.kind is not ForKind.VECTORIZED:
        return False
    store = vector_space(inner).body
    if not isinstance(store, Store) or store.reduce is not None:
        return False
    loads = [e for e in walk(store.value) if isinstance(e, Load)]
    along = any(loop.var in set(walk(e.indices[-1])) for e in loads if e.indices)
    return along and all(e.source is not store.buffer for e in loads)


def load_transposed(e: Emitter, buffer: Buffer, expr: Load) -> Value | None:
    """The values that *expr* reads at the current step, in their form in memory.

    The loads of a whole block are emitted at its first step: they read only elements that some step
    reads, and none that is written between the steps.  None if the reads do not form a block.
    """
    block = e.block
    if block is None or e.lanes is None:
        return None
    width = e.vector.width
    group = block.step // width * width
    found = block.vectors.get((expr, group))
    if found is None:
        if group + width > block.extent:
            return None
        first, last = (_at(e, buffer, expr, step) for step in (group, group + width - 1))
        may_skip = bool(e.guards) or expr in block.conditional
        if not _is_block(first, last, width, may_skip):
            return None
        lanes = lane_values(first.offset, width)
        found = _transposed(e, load_rows(e, first, lanes), first.size)
        block.vectors[expr, group] = found
    return found[block.step - group]


def _at(e: Emitter, buffer: Buffer, expr: Load, step: int) -> Access:
    assert e.block is not None
    with e.bound({e.block.var: constant(step)}):
        return access(e, buffer, [e.index(index) for index in expr.indices])


def _is_block(first: Access, last: Access, width: int, may_skip: bool) -> bool:
    """True if the steps walk over consecutive elements of rows that do not overlap, and all of
    them may be read in every lane: some steps or lanes would not read them if they *may_skip*."""
    offset: Affine = first.offset
    if offset.lanes is None or offset.has_vector_symbol:
        return False
    if may_skip and not (first.in_bounds and last.in_bounds):
        return False
    moved = last.offset - offset
    starts = sorted(set(lane_values(offset, width)))
    apart = all(b - a >= width for a, b in zip(starts, starts[1:], strict=False))
    return apart and moved.is_constant and moved.const == width - 1


def _transposed(e: Emitter, rows: list[Value], size: int) -> list[Value]:
    """Transpose a square of vectors whose elements have *size* bytes.

    Round q pairs the rows whose numbers differ in bit q and exchanges that bit with a bit of the
    position inside a vector.  The first rounds exchange bits of the position within 16 bytes
    (unpacks), the last rounds bits of the number of the 16-byte block.
    """
    width = len(rows)
    inside = min(width, _BLOCK_BYTES // size)
    bits, low = width.bit_length() - 1, inside.bit_length() - 1
    became: list[int] = []
    for q in range(bits):
        became.append(low - 1 - q if q < low else q)
        halves = _unpacked(width, inside, 1 << q) if q < low else _blocks(width, inside)
        made = list(rows)
        for r in (r for r in range(width) if not r >> q & 1):
            pair = rows[r], rows[r | 1 << q]
            made[r], made[r | 1 << q] = (shuffled(e, *pair, list(half)) for half in halves)
        rows = made
    return [rows[sum((c >> became[q] & 1) << q for q in range(bits))] for c in range(width)]


def _unpacked(width: int, inside: int, unit: int) -> tuple[list[int], list[int]]:
    """Shuffle orders that interleave runs of *unit* elements of two vectors, block by block.

    The first order takes the low half of each block of *inside* elements, the second the high half.
    """

    def half(start: int) -> list[int]:
        return [
            at + block + second + k
            for block in range(0, width, inside)
            for at in range(start, start + inside // 2, unit)
            for second in (0, width)
            for k in range(unit)
        ]

    return half(0), half(inside // 2)


def _blocks(width: int, inside: int) -> tuple[list[int], list[int]]:
    """Shuffle orders that take the even and the odd blocks of *inside* elements of two vectors."""

    def half(start: int) -> list[int]:
        return [
            second + block + k
            for second in (0, width)
            for block in range(start, width, 2 * inside)
            for k in range(inside)
        ]

    return half(0), half(inside)
