"""Programs with one fault planted in them, which the interpreter has to find."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ansorpy.ir.interpret import run_program
from ansorpy.ir.interpret.races import Race
from ansorpy.ir.loops import (
    Alloc,
    Async,
    Barrier,
    Program,
    Role,
    Scope,
    Seq,
    Stmt,
    Wait,
    walk_stmts,
)
from ansorpy.ir.rewrite.rewriter import Rewriter

__all__ = ["Less", "each_left_out", "planted_races"]


class Less(Rewriter):
    """Leaves out the *number*-th statement of a kind, or all of them without a number.

    Waits are kept, but return while one more is under way.  With *of*, only commits or waits of
    what runs asynchronously are meant.
    """

    def __init__(self, kind: type[Stmt], number: int | None = None, of: Async | None = None):
        super().__init__()
        self.kind = kind
        self.of = of
        self.number = number
        self.seen = 0

    def stmt(self, s: Stmt) -> Stmt:
        if isinstance(s, self.kind) and self.of in (None, getattr(s, "kind", None)):
            self.seen += 1
            if self.number not in (None, self.seen):
                return s
            return Wait(s.kind, s.pending + 1) if isinstance(s, Wait) else Seq(())
        return super().stmt(s)


def each_left_out(program: Program, kind: type[Stmt], of: Async | None = None) -> Iterator[Program]:
    """*program* with each of its statements of a kind less (:class:`Less`), one at a time."""
    count = Less(kind, of=of)
    count.stmt(program.body)
    for number in range(1, 1 + count.seen):
        yield program.with_body(Less(kind, number, of).stmt(program.body))


def planted_races(program: Program, rng: np.random.Generator) -> set[str]:
    """The shared buffers that two threads meet in, of *program* without one of its barriers each.

    With all of them it must run.
    """
    arrays = [
        np.zeros(p.buffer.shape, p.buffer.dtype.numpy) if p.role is Role.OUTPUT
        else rng.standard_normal(p.buffer.shape).astype(p.buffer.dtype.numpy)
        for p in program.params
    ]  # fmt: skip
    run_program(program, arrays)
    allocated = [s.buffer for s in walk_stmts(program.body) if isinstance(s, Alloc)]
    shared = {buffer.name for buffer in allocated if buffer.scope is Scope.SHARED}
    found: set[str] = set()
    for wrong in each_left_out(program, Barrier):
        try:
            run_program(wrong, arrays)
        except Race as race:
            found |= {name for name in shared if f"{name}[" in str(race)}
    return found
