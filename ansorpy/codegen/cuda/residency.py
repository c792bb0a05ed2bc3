"""How many blocks of a kernel should run on one SM together.

The assembler takes what registers it likes, and a few more than a second block leaves are many
warps fewer.  ``__launch_bounds__`` says how many blocks there should be.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ansorpy.codegen.cuda.plan import Launch
from ansorpy.codegen.tiles import free_vars
from ansorpy.ir.affine import linear
from ansorpy.ir.expr import Load, walk
from ansorpy.ir.loops import (
    Alloc,
    Buffer,
    For,
    ForKind,
    Scope,
    Stmt,
    Store,
    substatements,
    walk_stmts,
)
from ansorpy.target import Target

__all__ = ["BESIDE", "blocks_at_once", "operands_of"]

BESIDE = 56
"""Registers that a thread needs beside its sums at least: operands, addresses, counters.
Measured: with 64 sums of an 8 x 8 tile 120 suffice, without any limit it takes 125 to 136."""

ADDRESSES = 24
"""Of these for other things than operands."""

_FEW = 32
"""A thread that holds less leaves the assembler no reason to take too many."""

_WORD, _VECTOR = 4, 4

_SYSTEM = 1024
"""Bytes of shared memory that the system takes of each block."""


def blocks_at_once(body: Stmt, launch: Launch, target: Target) -> int:
    """Blocks of the kernel *body* that one SM should run; 1 where nothing is to be said."""
    held = sum(
        s.buffer.size * max(1, s.buffer.dtype.bytes // _WORD)
        for s in walk_stmts(body)
        if isinstance(s, Alloc) and s.buffer.scope is Scope.LOCAL
    )
    if held < _FEW:
        return 1
    beside = max(BESIDE, ADDRESSES + operands_of(body))
    by_registers = target.registers_per_block // (launch.threads * (held + beside))
    by_shared = target.shared_per_sm_bytes // (launch.shared_bytes + _SYSTEM)
    by_threads = target.max_threads_per_sm // launch.threads
    return max(1, min(by_registers, by_shared, by_threads, target.max_blocks_per_sm))


def operands_of(body: Stmt) -> int:
    """Registers for what one step of the largest sum reads; for four steps of what is loaded so."""
    found = 0
    for store, loops in _sums(body, ()):
        indexing = set().union(*(free_vars(index) for index in store.indices))
        extents = {loop.var: loop.extent for loop in loops}
        steps = extents.keys() - indexing
        loads = {e for e in walk(store.value) if isinstance(e, Load)}
        total = 0
        for load in loads:
            used = set().union(*(free_vars(index) for index in load.indices))
            along = steps & set(linear(load.indices[-1]).terms) if load.indices else set()
            each = prod(extents[var] for var in used & indexing & extents.keys())
            total += each * (_VECTOR if along and _in_shared(load) else 1)
        found = max(found, total)
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
