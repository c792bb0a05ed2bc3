"""How many blocks of a kernel should run on one SM together.

The assembler takes what registers it likes, and a few more than a second block leaves are many
warps fewer.  ``__launch_bounds__`` says how many blocks there should be.
"""

from __future__ import annotations

from ansorpy.codegen.cuda.plan import Launch
from ansorpy.ir.loops import Alloc, Scope, Stmt, walk_stmts
from ansorpy.target import Target

__all__ = ["BESIDE", "blocks_at_once"]

BESIDE = 56
"""Registers that a thread needs beside its sums: operands of a few steps, addresses, counters.
Measured: with 64 sums of an 8 x 8 tile 120 suffice, without any limit it takes 125 to 136."""

_FEW = 32
"""A thread that holds less leaves the assembler no reason to take too many."""

_WORD = 4

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
    by_registers = target.registers_per_block // (launch.threads * (held + BESIDE))
    by_shared = target.shared_per_sm_bytes // (launch.shared_bytes + _SYSTEM)
    by_threads = target.max_threads_per_sm // launch.threads
    return max(1, min(by_registers, by_shared, by_threads, target.max_blocks_per_sm))
