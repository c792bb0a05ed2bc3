"""Place the buffers that a program allocates: stack, thread scratch, or shared workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from ansorpy.codegen.accesses import buffers_used
from ansorpy.codegen.tiles import register_buffers
from ansorpy.codegen.vectors import chunks, lanes_for, vector_space
from ansorpy.errors import CodegenError
from ansorpy.ir.extents import AnyExtent, extreme, most
from ansorpy.ir.loops import (
    Alloc,
    Buffer,
    For,
    ForKind,
    If,
    Program,
    Scope,
    Stmt,
    substatements,
    walk_stmts,
)
from ansorpy.ir.sizes import fixed
from ansorpy.ir.strides import dense_strides, padded
from ansorpy.ir.symbols import SizeOp
from ansorpy.target import Target

__all__ = ["STACK_BYTES", "TILE_BYTES", "StoragePlan", "allocated", "plan_storage"]

STACK_BYTES = 4096
"""Stack bytes per kernel; small, because callers of a library may run it on a small stack."""
TILE_BYTES = 16384
"""Bytes of register tiles that one call of a kernel may need: four tiles that each fill 32 512-bit
registers twice.  Of the branches of a condition, such as parts for several sizes, it takes one.

They use the stack only where LLVM spills; if it kept all of them in memory, the stack would hold
them in addition to ``STACK_BYTES``.
"""


@dataclass(frozen=True)
class StoragePlan:
    """Byte offsets of workspace buffers (``shared``) and of large locals in thread scratch.

    Workspace buffers have the sizes of the call; a local whose shape depends on dimensions has room
    for their largest sizes.  ``stack`` holds the register tiles and the small locals.  ``rows``
    holds padded row lengths (in elements) of locals on the stack, so that the end of a row needs no
    masked store.
    """

    shared: Mapping[Buffer, AnyExtent]
    scratch: Mapping[Buffer, int]
    stack: frozenset[Buffer]
    rows: Mapping[Buffer, int]
    shared_bytes: AnyExtent
    thread_bytes: int

    @property
    def shares_bytes(self) -> bool:
        """Whether some workspace buffers use the same bytes, one after the other.

        They lie by nesting, so then the outermost of them begin at the same byte.
        """
        offsets = list(self.shared.values())
        return len(set(offsets)) < len(offsets)

    def workspace_bytes(self, threads: int) -> AnyExtent:
        """Workspace bytes that one call with *threads* threads needs, by the sizes of the call."""
        return self.shared_bytes + threads * self.thread_bytes

    def strides(self, buffer: Buffer) -> tuple[int, ...]:
        """Strides in elements along each dimension."""
        row = self.rows.get(buffer)
        strides = dense_strides(buffer.shape if row is None else (*buffer.shape[:-1], row))
        return tuple(map(fixed, strides))

    def size(self, buffer: Buffer) -> int:
        """Number of elements stored, including padding."""
        return _padded_size(buffer, self.rows)


def plan_storage(program: Program, target: Target) -> StoragePlan:
    """Place every allocated buffer; buffers whose lifetimes are disjoint share bytes."""
    rows = _padded_rows(program.body, target)
    stack = _on_stack(program.body, rows, target)
    shared, shared_bytes = _stacked(program.body, Scope.WORKSPACE, frozenset(), lambda b: b.bytes)
    scratch, thread_bytes = _stacked(program.body, Scope.LOCAL, stack, lambda b: most(b.bytes))
    rows = {buffer: row for buffer, row in rows.items() if buffer in stack}
    return StoragePlan(shared, scratch, stack, rows, shared_bytes, thread_bytes)


def allocated(stmt: Stmt) -> Iterator[Buffer]:
    """Yield the buffers allocated in *stmt*, in program order."""
    for inner in walk_stmts(stmt):
        if isinstance(inner, Alloc):
            if inner.buffer.scope not in (Scope.LOCAL, Scope.WORKSPACE):
                raise CodegenError(
                    f"{inner.buffer.name} is allocated in {inner.buffer.scope.value} memory, "
                    "which a CPU kernel does not have",
                    hint="allocate it as local or workspace",
                )
            yield inner.buffer


def _padded_rows(body: Stmt, target: Target) -> dict[Buffer, int]:
    """Padded row lengths of locals whose last vector in a row is partly masked."""
    rows: dict[Buffer, int] = {}
    dense: set[Buffer] = set()
    for stmt in walk_stmts(body):
        if not isinstance(stmt, For) or stmt.kind is not ForKind.VECTORIZED:
            continue
        space = vector_space(stmt)
        last = chunks(space.extent, lanes_for(space.body, target))[-1]
        for buffer in buffers_used(space.body):
            if buffer.scope is not Scope.LOCAL:
                continue
            if len(space.loops) > 1:
                dense.add(buffer)
            elif last.active < last.width and buffer.shape[-1:] == (space.extent,):
                rows[buffer] = last.start + last.width
    return {buffer: row for buffer, row in rows.items() if buffer not in dense}


def _padded_size(buffer: Buffer, rows: Mapping[Buffer, int]) -> int:
    row = rows.get(buffer)
    size = fixed(buffer.size)
    return size if row is None else size // fixed(buffer.shape[-1]) * row


def _on_stack(body: Stmt, rows: Mapping[Buffer, int], target: Target) -> frozenset[Buffer]:
    """The register tiles, which LLVM promotes only from the stack, and the smallest other locals.

    A tile is at most twice the register file: a larger one would be spilled element by element.
    """
    local = [buffer for buffer in allocated(body) if buffer.scope is Scope.LOCAL]
    bytes_of = {b: padded(_padded_size(b, rows) * b.dtype.bytes) for b in local}
    candidates = register_buffers(body)
    largest = 2 * target.vector_registers * target.vector_bits // 8
    tiles = {b: size for b, size in bytes_of.items() if b in candidates and size <= largest}
    others = {b: size for b, size in bytes_of.items() if b not in tiles}
    in_registers = _smallest_of_branches(body, tiles, TILE_BYTES)
    return frozenset({*in_registers, *_smallest(others, STACK_BYTES)})


def _smallest_of_branches(body: Stmt, sizes: Mapping[Buffer, int], space: int) -> Iterator[Buffer]:
    """As many buffers as fit in *space* bytes in each branch of *body*, smallest first."""
    branches = _Branch.of(body)
    chosen: dict[Buffer, int] = {}
    for buffer, size in sorted(sizes.items(), key=lambda item: item[1]):
        if branches.bytes({**chosen, buffer: size}) <= space:
            chosen[buffer] = size
            yield buffer


@dataclass(frozen=True)
class _Branch:
    """The buffers allocated in a statement, apart from those in branches that exclude others."""

    buffers: list[Buffer] = field(default_factory=list)
    either: list[tuple[_Branch, _Branch]] = field(default_factory=list)

    @staticmethod
    def of(stmt: Stmt) -> _Branch:
        found = _Branch()
        found._add(stmt)
        return found

    def _add(self, stmt: Stmt) -> None:
        if isinstance(stmt, Alloc):
            self.buffers.append(stmt.buffer)
        if isinstance(stmt, If) and stmt.other is not None:
            self.either.append((_Branch.of(stmt.then), _Branch.of(stmt.other)))
            return
        for inner in substatements(stmt):
            self._add(inner)

    def bytes(self, sizes: Mapping[Buffer, int]) -> int:
        """The most bytes of the buffers in *sizes* that one way through the branches allocates."""
        held = sum(sizes.get(buffer, 0) for buffer in self.buffers)
        return held + sum(max(a.bytes(sizes), b.bytes(sizes)) for a, b in self.either)


def _smallest(sizes: Mapping[Buffer, int], space: int) -> Iterator[Buffer]:
    """As many buffers as fit in *space* bytes, smallest first."""
    for buffer, size in sorted(sizes.items(), key=lambda item: item[1]):
        space -= size
        if space < 0:
            return
        yield buffer


def _stacked(
    body: Stmt, scope: Scope, excluded: frozenset[Buffer], room: Callable[[Buffer], AnyExtent]
) -> tuple[dict[Buffer, AnyExtent], AnyExtent]:
    """Offsets by nesting, each buffer after the enclosing buffers; also returns the peak size."""
    offsets: dict[Buffer, AnyExtent] = {}
    peak: AnyExtent = 0

    def visit(stmt: Stmt, top: AnyExtent) -> None:
        nonlocal peak
        if isinstance(stmt, Alloc) and stmt.buffer.scope is scope and stmt.buffer not in excluded:
            offsets[stmt.buffer] = top
            top += padded(room(stmt.buffer))
            peak = extreme(SizeOp.MAX, peak, top)
        for inner in substatements(stmt):
            visit(inner, top)

    visit(body, 0)
    return offsets, peak
