"""Split a loop program into kernels that are launched one after another.

Every nest bound to blocks and threads is a kernel.  Unbound statements between two nests form a
single-thread kernel.  Workspace buffers, which several kernels may use, live in global memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ansorpy.codegen.cuda.launch.plan import Extents
from ansorpy.errors import CodegenError
from ansorpy.ir.loops import (
    BLOCK_INDICES,
    LAUNCH_INDICES,
    THREAD_INDICES,
    Alloc,
    Buffer,
    For,
    ForKind,
    If,
    Let,
    Scope,
    Seq,
    Stmt,
    walk_stmts,
)
from ansorpy.ir.sizes import fixed

__all__ = ["KernelNest", "kernel_nests", "workspace_offsets"]

WORKSPACE_ALIGNMENT = 256
"""Alignment in bytes, that of CUDA's own allocations."""


@dataclass(frozen=True)
class KernelNest:
    """The body of one kernel, and the extent of every index that it binds."""

    body: Stmt
    extents: Mapping[ForKind, int]

    @property
    def grid(self) -> Extents:
        return self._along(BLOCK_INDICES)

    @property
    def block(self) -> Extents:
        return self._along(THREAD_INDICES)

    def _along(self, kinds: tuple[ForKind, ForKind, ForKind]) -> Extents:
        x, y, z = (self.extents.get(kind, 1) for kind in kinds)
        return x, y, z


def kernel_nests(body: Stmt) -> list[KernelNest]:
    """Split *body* into kernels, in order.

    Raises:
        CodegenError: A kernel would be launched in a loop, or together with another one under a
            condition.
    """
    found: list[KernelNest] = []
    waiting: list[Stmt] = []

    def flush() -> None:
        if waiting:
            found.append(_nest(Seq(tuple(waiting)) if len(waiting) > 1 else waiting[0]))
            waiting.clear()

    for part in _parts(body):
        if not _heads(part):
            waiting.append(part)
            continue
        flush()
        _require_one(part)
        found.append(_nest(part))
    flush()
    return found


def workspace_offsets(body: Stmt) -> tuple[dict[Buffer, int], int]:
    """Byte offsets of *body*'s buffers in the workspace, and its total size.

    Buffers do not share bytes: the blocks of a kernel progress independently.
    """
    offsets: dict[Buffer, int] = {}
    size = 0
    for s in walk_stmts(body):
        if isinstance(s, Alloc) and s.buffer.scope is Scope.WORKSPACE:
            offsets[s.buffer] = size
            size += -(-s.buffer.bytes // WORKSPACE_ALIGNMENT) * WORKSPACE_ALIGNMENT
    return offsets, size


def _parts(s: Stmt) -> Iterator[Stmt]:
    """The statements of *s* that the host launches one after another."""
    match s:
        case Seq(body):
            for part in body:
                yield from _parts(part)
        case Alloc(buffer, body) if buffer.scope is Scope.WORKSPACE:
            yield from _parts(body)
        case _:
            yield s


def _heads(s: Stmt) -> list[For]:
    """The outermost bound loops of *s*, at which kernels begin."""
    if isinstance(s, For) and s.kind in LAUNCH_INDICES:
        return [s]
    match s:
        case Seq(body):
            return [head for part in body for head in _heads(part)]
        case If(_, then, other):
            return _heads(then) + ([] if other is None else _heads(other))
        case For(_, _, _, body) | Let(_, _, body) | Alloc(_, body):
            return _heads(body)
        case _:
            return []


def _require_one(s: Stmt) -> None:
    heads = _heads(s)
    if len(heads) > 1:
        raise CodegenError(
            f"{len(heads)} kernels would be launched under one condition or allocation",
            hint="bind the outermost loops of every stage",
        )
    inner = s
    while inner is not heads[0]:
        match inner:
            case For(var, _, _, _):
                raise CodegenError(
                    f"a kernel would be launched in every iteration of {var.name}",
                    hint="bind an outer loop, or move the bound loops outside",
                )
            case Let(_, _, body) | Alloc(_, body) | If(_, body, None):
                inner = body
            case _:
                raise CodegenError("a kernel would be launched inside a sequence of statements")


def _nest(body: Stmt) -> KernelNest:
    extents: dict[ForKind, int] = {}
    for inner in walk_stmts(body):
        if isinstance(inner, For) and inner.kind in LAUNCH_INDICES:
            extents[inner.kind] = max(extents.get(inner.kind, 1), fixed(inner.extent))
    return KernelNest(body, extents)
