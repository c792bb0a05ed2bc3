"""Choose how many blocks of a kernel should run together on one SM.

The assembler allocates registers freely, and a few registers too many leave no room for a second
block, which costs many warps.  ``__launch_bounds__`` tells it how many blocks to make room for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from ansorpy.arrays import Ints
from ansorpy.codegen.accesses import free_vars
from ansorpy.codegen.cuda.launch.plan import Launch
from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.expr import Binary, Const, Expr, Load, Var, walk
from ansorpy.ir.interpret.numerics import BINARY
from ansorpy.ir.loops import (
    Alloc,
    Buffer,
    For,
    ForKind,
    Instruction,
    Scope,
    Stmt,
    Store,
    substatements,
    walk_stmts,
)
from ansorpy.ir.sizes import fixed
from ansorpy.target import Target

__all__ = ["ADDRESSES", "BESIDE", "blocks_at_once", "operands_of"]


BESIDE = 56
"""Minimum registers of a thread besides its sums: operands, addresses, counters.
Measured: with the 64 sums of an 8 x 8 tile, 120 in total suffice; without a limit, the assembler
takes 125 to 136."""

ADDRESSES = 24
"""The part of ``BESIDE`` that is not for operands."""

_FEW = 32
"""With fewer registers for sums than this, the assembler does not take too many."""

_WORD, _VECTOR = 4, 4

_SYSTEM = 1024
"""Bytes of shared memory that the system reserves per block."""


def blocks_at_once(body: Stmt, launch: Launch, target: Target) -> int:
    """Number of blocks of the kernel *body* that one SM should run; 1 means no requirement.

    Narrow elements take one register each, unless they are packed as operands of warp instructions.
    """
    packed = {
        buffer for s in walk_stmts(body) if isinstance(s, Instruction) for buffer, _ in s.operands
    }
    held = sum(
        s.buffer.bytes // _WORD if s.buffer in packed
        else s.buffer.size * max(1, s.buffer.dtype.bytes // _WORD)
        for s in walk_stmts(body)
        if isinstance(s, Alloc) and s.buffer.scope is Scope.LOCAL
    )  # fmt: skip
    if held < _FEW:
        return 1
    beside = max(BESIDE, ADDRESSES + operands_of(body))
    by_registers = target.registers_per_block // (launch.threads * (held + beside))
    by_shared = target.shared_per_sm_bytes // (launch.shared_bytes + _SYSTEM)
    by_threads = target.max_threads_per_sm // launch.threads
    return max(1, min(by_registers, by_shared, by_threads, target.max_blocks_per_sm))


def operands_of(body: Stmt) -> int:
    """Registers for one step's operands of the largest sum; for four steps if loaded as vectors."""
    return max((_operands(store, loops) for store, loops in _sums(body, ())), default=0)


def _operands(store: Store, loops: tuple[For, ...]) -> int:
    indexing = free_vars(*store.indices)
    space = [loop for loop in loops if loop.var in indexing]
    steps = {loop.var for loop in loops} - indexing
    extents = [fixed(loop.extent) for loop in space]
    grid = np.indices(extents).reshape(len(space), prod(extents))
    at = dict(zip((loop.var for loop in space), grid, strict=True))
    total = 0
    for load in {e for e in walk(store.value) if isinstance(e, Load) and e.indices}:
        places = [np.broadcast_to(_value(index, at), grid.shape[1:]) for index in load.indices]
        along = bool(steps & set(linear(load.indices[-1]).terms)) and _in_shared(load)
        total += len(np.unique(np.stack(places), axis=1).T) * (_VECTOR if along else 1)
    return total


def _value(index: Expr, at: Mapping[Var, Ints]) -> Ints | int:
    """Evaluate *index* at values of variables; other variables and non-arithmetic count as 0."""
    if isinstance(index, Const):
        return int(index.value)
    if isinstance(index, Var):
        return at.get(index, 0)
    if not isinstance(index, Binary):
        return 0
    a, b = _value(index.a, at), _value(index.b, at)
    found: Ints | int = BINARY[index.op](a, b)
    return found


def _in_shared(load: Load) -> bool:
    return isinstance(load.source, Buffer) and load.source.scope is Scope.SHARED


def _sums(s: Stmt, loops: tuple[For, ...]) -> Iterator[tuple[Store, tuple[For, ...]]]:
    """The sums that a thread holds, and the unrolled loops around each."""
    if isinstance(s, Store):
        if s.reduce is not None and s.buffer.scope is Scope.LOCAL:
            yield s, loops
        return
    if isinstance(s, For) and s.kind in (ForKind.UNROLLED, ForKind.VECTORIZED):
        loops = (*loops, s)
    for inner in substatements(s):
        yield from _sums(inner, loops)
