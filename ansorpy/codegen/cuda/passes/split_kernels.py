"""Split a loop program into kernels that are launched one after another.

Every nest bound to blocks and threads is a kernel.  Unbound statements between two nests form a
single-thread kernel.  Workspace buffers, which several kernels may use, live in global memory.
Conditions on sizes around kernels decide whether they are launched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ansorpy.codegen.cuda.launch.plan import Extents, Grid
from ansorpy.errors import CodegenError
from ansorpy.ir.analysis.interval import extents_of
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Compare, CompareOp, Expr
from ansorpy.ir.extents import Extent, Symbolic, extreme, least, most
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
    substatements,
    walk_stmts,
)
from ansorpy.ir.sizes import fixed
from ansorpy.ir.symbols import SizeOp

__all__ = ["KernelNest", "kernel_nests", "workspace_offsets"]

WORKSPACE_ALIGNMENT = 256
"""Alignment in bytes, that of CUDA's own allocations."""


@dataclass(frozen=True)
class KernelNest:
    """The body of one kernel, and the extent of every index that it binds.

    Extents of blocks may depend on dimensions; those of threads are numbers.  If one is 0, or one
    of ``where`` is not positive, the kernel does nothing and is not launched.
    """

    body: Stmt
    extents: Mapping[ForKind, Extent]
    where: tuple[Extent, ...] = ()

    @property
    def grid(self) -> Grid:
        x, y, z = (self.extents.get(kind, 1) for kind in BLOCK_INDICES)
        return x, y, z

    @property
    def block(self) -> Extents:
        x, y, z = (fixed(self.extents.get(kind, 1)) for kind in THREAD_INDICES)
        return x, y, z


def kernel_nests(body: Stmt, where: tuple[Extent, ...] = ()) -> list[KernelNest]:
    """Split *body* into kernels, in order; they run where all of *where* are positive.

    Raises:
        CodegenError: A kernel would be launched in a loop, or together with another one under a
            condition on other values than sizes, or its number of threads is not a number.
    """
    found: list[KernelNest] = []
    waiting: list[Stmt] = []

    def flush() -> None:
        if waiting:
            found.append(_nest(Seq(tuple(waiting)) if len(waiting) > 1 else waiting[0], where))
            waiting.clear()

    for part in _parts(body):
        if not _heads(part):
            waiting.append(part)
            continue
        flush()
        if isinstance(part, If) and (holds := _positive_where(part.cond)) is not None:
            found += kernel_nests(part.then, (*where, holds))
            found += kernel_nests(part.other or Seq(()), (*where, 1 - holds))
            continue
        _require_one(part)
        found.append(_nest(part, where))
    flush()
    return found


def _positive_where(cond: Expr) -> Extent | None:
    """The extent that is positive where *cond*, a comparison of sizes, holds; None for others."""
    if not isinstance(cond, Compare) or cond.a.dtype is not DType.INT64 or cond.op not in _ORDERS:
        return None
    flipped, added = _ORDERS[cond.op]
    low, high = extents_of(cond.a - cond.b if flipped else cond.b - cond.a, {})
    return low + added if isinstance(low, Symbolic) and low == high else None


_ORDERS = {
    CompareOp.LT: (False, 0), CompareOp.LE: (False, 1),
    CompareOp.GT: (True, 0), CompareOp.GE: (True, 1),
}  # fmt: skip
"""Whether ``a - b`` instead of ``b - a`` is positive where ``a op b``, and what to add to it."""


def workspace_offsets(body: Stmt) -> tuple[dict[Buffer, int], int]:
    """Byte offsets of *body*'s buffers in the workspace, and its total size.

    A buffer whose shape depends on dimensions has room for their largest sizes.  Buffers do not
    share bytes: the blocks of a kernel progress independently.
    """
    offsets: dict[Buffer, int] = {}
    size = 0
    for s in walk_stmts(body):
        if isinstance(s, Alloc) and s.buffer.scope is Scope.WORKSPACE:
            offsets[s.buffer] = size
            size += -(-most(s.buffer.bytes) // WORKSPACE_ALIGNMENT) * WORKSPACE_ALIGNMENT
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
    return [head for part in substatements(s) for head in _heads(part)]


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


def _nest(body: Stmt, where: tuple[Extent, ...]) -> KernelNest:
    extents: dict[ForKind, Extent] = {}
    for inner in walk_stmts(body):
        if not isinstance(inner, For) or inner.kind not in LAUNCH_INDICES:
            continue
        if inner.kind in THREAD_INDICES and not isinstance(inner.extent, int):
            raise CodegenError(
                f"a block would have {inner.extent} threads along {inner.kind.value}, which is not "
                "a number",
                hint=f"split {inner.var.name} and bind an inner part to threads",
            )
        known = extents.get(inner.kind, inner.extent)
        extents[inner.kind] = extreme(SizeOp.MAX, known, inner.extent)
    alone = _around_all(body)
    for kind, extent in extents.items():
        if least(extent) < 1 and alone.get(kind) != extent:
            extents[kind] = extreme(SizeOp.MAX, extent, 1)
    return KernelNest(body, extents, where)


def _around_all(s: Stmt) -> dict[ForKind, Extent]:
    """The extents of the bound loops around everything that *s* does."""
    found: dict[ForKind, Extent] = {}
    while True:
        match s:
            case For(_, extent, kind, body):
                found.setdefault(kind, extent)
            case Let(_, _, body) | Alloc(_, body) | If(_, body, None):
                pass
            case _:
                return found
        s = body
