"""Decide which inputs of a program its outputs may overwrite.

An element of the input may be overwritten once nothing reads it any more.  This is guaranteed if
each element of the output is stored once, and the only statement that reads the input is this
store, at the same element.  (Tiles that recompute an overlap store elements twice: the second time
they would read their own results.)
"""

from __future__ import annotations

from collections.abc import Iterator

from ansorpy.ir.analysis.structural_equality import same_structure
from ansorpy.ir.expr import Load, walk
from ansorpy.ir.loops import (
    Buffer,
    For,
    Instruction,
    Program,
    Role,
    Stmt,
    Store,
    expressions,
    substatements,
    walk_stmts,
)

__all__ = ["may_overlap", "overwritable"]


def overwritable(program: Program) -> tuple[tuple[int, int], ...]:
    """Pairs (number of an input, number of an output) where the output may overwrite the input.

    *program* must be correct: it writes every element of its outputs.
    """
    inputs = [p.buffer for p in program.params if p.role is Role.INPUT]
    outputs = [p.buffer for p in program.params if p.role is Role.OUTPUT]
    if any(isinstance(stmt, Instruction) for stmt in walk_stmts(program.body)):
        return ()
    stores = list(_stores(program.body, 1))
    return tuple(
        (i, o)
        for o, output in enumerate(outputs)
        for i, given in enumerate(inputs)
        if _alike(given, output)
        and _is_stored_once(output, stores)
        and _is_read_as_stored(given, output, program.body)
    )


def may_overlap(program: Program) -> frozenset[Buffer]:
    """Parameters that may overlap another one in a call: all buffers of :func:`overwritable`.

    Compiled code must not declare them ``noalias`` or ``__restrict__``: if such pointers overlap,
    the behaviour is undefined in LLVM and CUDA.
    """
    inputs = [p.buffer for p in program.params if p.role is Role.INPUT]
    outputs = [p.buffer for p in program.params if p.role is Role.OUTPUT]
    return frozenset(buffer for i, o in overwritable(program) for buffer in (inputs[i], outputs[o]))


def _alike(a: Buffer, b: Buffer) -> bool:
    """True if equal indices give equal byte offsets in both buffers."""
    return (a.shape, a.dtype.bytes, a.steps) == (b.shape, b.dtype.bytes, b.steps)


def _stores(stmt: Stmt, times: int) -> Iterator[tuple[Store, int]]:
    """Each store, and an upper bound on how often it runs."""
    if isinstance(stmt, Store):
        yield stmt, times
    inner = times * stmt.extent if isinstance(stmt, For) else times
    for below in substatements(stmt):
        yield from _stores(below, inner)


def _is_stored_once(output: Buffer, stores: list[tuple[Store, int]]) -> bool:
    """True if the number of stores to *output* equals the number of its elements."""
    own = [(store, times) for store, times in stores if store.buffer is output]
    plain = all(store.reduce is None for store, _ in own)
    return plain and sum(times for _, times in own) == output.size


def _is_read_as_stored(given: Buffer, output: Buffer, body: Stmt) -> bool:
    """True if *given* is read only by stores to *output*, at the elements they write."""
    for stmt in walk_stmts(body):
        for expr in expressions(stmt):
            for load in walk(expr):
                if not isinstance(load, Load) or load.source is not given:
                    continue
                if not isinstance(stmt, Store) or stmt.buffer is not output:
                    return False
                is_there = all(map(same_structure, load.indices, stmt.indices))
                if expr is not stmt.value or not is_there:
                    return False
    return True
