"""What a lowered program does, read off its statements: how loops run, lanes, shared memory.

Nothing here uses the schedule, so that tables can be compared with what they predict.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import prod
from typing import NamedTuple

from ansorpy.ir.expr import Call, Const, Expr, Load, Select, Var, children, walk
from ansorpy.ir.loops import AsyncCopy, For, ForKind, Instruction, Stmt, Store, substatements

__all__ = ["Ran", "Statement", "plain", "statements", "written_out"]


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


def written_out(made: Statement, lanes: int, call: int, most_vectors: int) -> int:
    """Instructions of a statement with its unrolled loops and its vectors written out.

    Args:
        lanes: Elements in a vector.
        call: Instructions of an elementary function.
        most_vectors: A vector loop of more vectors is a loop over them.
    """
    if not isinstance(made.stmt, Store):
        return 1
    copies = prod(ran.extent for ran in made.loops if ran.kind is ForKind.UNROLLED)
    elements = prod(ran.extent for ran in made.loops if ran.kind is ForKind.VECTORIZED)
    own = _operations(made.stmt.value, call, set()) + (made.stmt.reduce is not None)
    return copies * min(-(-elements // lanes), most_vectors) * own


def _operations(e: Expr, call: int, seen: set[Expr]) -> int:
    """Distinct loads and operations of *e*; of a choice by indices alone, the longer side."""
    if e in seen or isinstance(e, Const | Var):
        return 0
    seen.add(e)
    if isinstance(e, Load):
        return 1
    if isinstance(e, Select) and not any(isinstance(part, Load) for part in walk(e.cond)):
        return max(_operations(side, call, set(seen)) for side in (e.then, e.other))
    own = call if isinstance(e, Call) else 1
    return own + sum(_operations(child, call, seen) for child in children(e))


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
