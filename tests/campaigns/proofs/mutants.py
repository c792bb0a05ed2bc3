"""Programs with a random change, to test the proofs of memory safety against the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ansorpy.errors import AnsorpyError
from ansorpy.ir.expr import Binary, BinaryOp, Compare, Const, Expr, Load, Select, Var, as_expr
from ansorpy.ir.extents import extreme, least
from ansorpy.ir.loops import (
    AsyncCopy,
    Barrier,
    Commit,
    Fence,
    For,
    If,
    Program,
    Seq,
    Stmt,
    Store,
    Wait,
)
from ansorpy.ir.rewrite.rewriter import Rewriter, map_children
from ansorpy.ir.symbols import SizeOp
from ansorpy.ir.verify import verify

__all__ = ["mutant"]

_SYNCHRONISING = (Barrier, Commit, Fence, Wait)
_TRIES = 50


def mutant(program: Program, rng: np.random.Generator) -> tuple[Program, str] | None:
    """*program* with one change that keeps it well formed, and a description of the change.

    None if no such change was found.
    """
    for _ in range(_TRIES):
        name, make = _CHANGES[int(rng.integers(len(_CHANGES)))]
        places = make(rng, -1)
        places.stmt(program.body)
        if not places.seen:
            continue
        change = make(rng, int(rng.integers(places.seen)))
        body = change.stmt(program.body)
        if body is program.body:
            continue
        changed = program.with_body(body)
        try:
            verify(changed)
        except AnsorpyError:
            continue
        return changed, name
    return None


class _Change(Rewriter):
    """Changes the ``chosen``-th of the nodes that it can change, and counts these nodes."""

    def __init__(self, rng: np.random.Generator, chosen: int):
        super().__init__()
        self.rng = rng
        self.chosen = chosen
        self.seen = 0

    def is_here(self) -> bool:
        """True at the chosen node."""
        self.seen += 1
        return self.seen == self.chosen + 1


class _ShiftIndex(_Change):
    """``a[i]`` becomes ``a[i + 1]`` or ``a[i - 1]``."""

    def leave(self, e: Expr) -> Expr:
        if isinstance(e, Load) and e.indices and self.is_here():
            return Load(e.source, self._shifted(e.indices))
        return e

    def stmt(self, s: Stmt) -> Stmt:
        s = super().stmt(s)
        if isinstance(s, Store) and s.indices and self.is_here():
            return replace(s, indices=self._shifted(s.indices))
        if isinstance(s, AsyncCopy) and self.is_here():
            return replace(s, indices=self._shifted(s.indices))
        return s

    def _shifted(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        d = int(self.rng.integers(len(indices)))
        by = int(self.rng.choice([-1, 1]))
        return tuple(i + by if n == d else i for n, i in enumerate(indices))


class _Constant(_Change):
    """A constant factor, divisor or term of an index or guard changes by one."""

    def leave(self, e: Expr) -> Expr:
        if not isinstance(e, Binary | Compare) or not isinstance(e.b, Const):
            return e
        if e.b.type.value != "int64" or not self.is_here():
            return e
        value = int(e.b.value) + int(self.rng.choice([-1, 1]))
        divides = isinstance(e, Binary) and e.op in (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD)
        return e if divides and value < 1 else replace(e, b=as_expr(value))


class _Extent(_Change):
    """A loop runs one iteration more or less."""

    def stmt(self, s: Stmt) -> Stmt:
        s = super().stmt(s)
        if isinstance(s, For) and self.is_here():
            return replace(
                s, extent=extreme(SizeOp.MAX, 1, s.extent + int(self.rng.choice([-1, 1])))
            )
        return s


class _Unguarded(_Change):
    """A condition is dropped, so the guarded code always runs."""

    def leave(self, e: Expr) -> Expr:
        return e.then if isinstance(e, Select) and self.is_here() else e

    def stmt(self, s: Stmt) -> Stmt:
        s = super().stmt(s)
        return s.then if isinstance(s, If) and self.is_here() else s


class _Unsynchronised(_Change):
    """A barrier, commit, wait or fence is dropped, or a wait returns too early."""

    def stmt(self, s: Stmt) -> Stmt:
        if isinstance(s, _SYNCHRONISING) and self.is_here():
            if isinstance(s, Wait) and self.rng.integers(2):
                return replace(s, pending=s.pending + 1)
            return Seq(())
        return super().stmt(s)


class _Swapped(_Change):
    """Two consecutive statements are swapped."""

    def stmt(self, s: Stmt) -> Stmt:
        s = super().stmt(s)
        if isinstance(s, Seq) and len(s.body) > 1 and self.is_here():
            n = int(self.rng.integers(len(s.body) - 1))
            parts = list(s.body)
            parts[n], parts[n + 1] = parts[n + 1], parts[n]
            return Seq(tuple(parts))
        return s


class _Dropped(_Change):
    """A store, or the last iteration of one, is left out."""

    def stmt(self, s: Stmt) -> Stmt:
        if isinstance(s, Store) and self.is_here():
            return Seq(())
        return super().stmt(s)


class _Guarded(_Change):
    """A loop's body skips one iteration."""

    def stmt(self, s: Stmt) -> Stmt:
        s = super().stmt(s)
        if isinstance(s, For) and least(s.extent) > 1 and self.is_here():
            skipped = s.var.not_equal(int(self.rng.integers(least(s.extent))))
            return replace(s, body=If(skipped, s.body, None))
        return s


class _OtherVariable(_Change):
    """One loop variable is used in place of another, somewhere in its body."""

    def __init__(self, rng: np.random.Generator, chosen: int):
        super().__init__(rng, chosen)
        self.around: list[Var] = []

    def stmt(self, s: Stmt) -> Stmt:
        if isinstance(s, For):
            self.around.append(s.var)
            self._memo.clear()
            s = super().stmt(s)
            self.around.pop()
            return s
        return super().stmt(s)

    def expr(self, e: Expr) -> Expr:
        if isinstance(e, Var) and len(self.around) > 1 and self.is_here():
            return self.around[int(self.rng.integers(len(self.around)))]
        return map_children(e, self.expr)


_CHANGES: Sequence[tuple[str, Callable[[np.random.Generator, int], _Change]]] = (
    ("an index is shifted", _ShiftIndex), ("a constant is changed", _Constant),
    ("an extent is changed", _Extent), ("a condition is dropped", _Unguarded),
    ("a synchronisation is dropped", _Unsynchronised), ("statements are swapped", _Swapped),
    ("a store is dropped", _Dropped), ("an iteration is skipped", _Guarded),
    ("another variable is used", _OtherVariable),
)  # fmt: skip
