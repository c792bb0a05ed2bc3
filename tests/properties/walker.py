"""What a lowered program does, read off its statements: how loops run, lanes, shared memory.

Nothing here uses the schedule, so that tables can be compared with what they predict.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ansorpy.ir.expr import Load, Var, walk
from ansorpy.ir.loops import AsyncCopy, For, ForKind, Instruction, Stmt, Store, substatements

__all__ = ["Ran", "Statement", "statements"]


class Ran(NamedTuple):
    """One loop around a statement."""

    name: str
    extent: int
    kind: ForKind


class Statement(NamedTuple):
    """A statement that writes, and the loops of several iterations around it, outermost first."""

    stmt: Store | AsyncCopy | Instruction
    loops: tuple[Ran, ...]
    vectors: tuple[Var, ...] = ()
    """The indices of the vector loops among them."""

    @property
    def updates(self) -> bool:
        """True for a term added to a sum, not for its initial value or for what combines sums."""
        if not isinstance(self.stmt, Store):
            return isinstance(self.stmt, Instruction)
        loads = [e.source for e in walk(self.stmt.value) if isinstance(e, Load)]
        return self.stmt.reduce is not None and self.stmt.buffer not in loads


def statements(body: Stmt) -> Mapping[str, list[Statement]]:
    """The statements that write each stage's buffer, or the partial sums of its lanes or threads,
    by the name of the stage."""
    found: dict[str, list[Statement]] = defaultdict(list)
    for name, made in _walk(body, (), ()):
        found[re.sub(r"\.(lanes|part)$", "", name)].append(made)
    return found


def _walk(
    s: Stmt, loops: tuple[Ran, ...], vectors: tuple[Var, ...]
) -> Iterator[tuple[str, Statement]]:
    if isinstance(s, Store | AsyncCopy):
        yield s.buffer.name, Statement(s, loops, vectors)
    elif isinstance(s, Instruction):
        yield s.operands[0][0].name, Statement(s, loops, vectors)
    if isinstance(s, For) and s.extent > 1:
        loops = (*loops, Ran(plain(s.var.name), s.extent, s.kind))
        vectors = (*vectors, s.var) if s.kind is ForKind.VECTORIZED else vectors
    for part in substatements(s):
        yield from _walk(part, loops, vectors)


def plain(name: str) -> str:
    """The name of a loop without what lowering appends to tell it from others."""
    return re.sub(r"_\d+$", "", re.sub(r"\.first$", "", name))
