"""Accesses to one of several instances of a buffer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ansorpy.ir.expr import Expr, Load
from ansorpy.ir.loops import AsyncCopy, Buffer, Instruction, Shuffle, Stmt, Store
from ansorpy.ir.rewrite.rewriter import Rewriter

__all__ = ["InInstance"]


class InInstance(Rewriter):
    """Redirects accesses to buffers to instance *number* of each.

    *instances* has, for each buffer, one with a dimension more, in front, which numbers them.
    """

    def __init__(self, instances: Mapping[Buffer, Buffer], number: Expr):
        super().__init__()
        self.instances = instances
        self.number = number

    def leave(self, e: Expr) -> Expr:
        if isinstance(e, Load) and isinstance(e.source, Buffer) and e.source in self.instances:
            return Load(*self._at(e.source, e.indices))
        return e

    def stmt(self, s: Stmt) -> Stmt:
        s = super().stmt(s)
        if isinstance(s, Store | Shuffle | AsyncCopy) and s.buffer in self.instances:
            buffer, indices = self._at(s.buffer, s.indices)
            return replace(s, buffer=buffer, indices=indices)
        if isinstance(s, Instruction) and any(buffer in self.instances for buffer, _ in s.operands):
            return Instruction(s.name, tuple(self._at(buffer, at) for buffer, at in s.operands))
        return s

    def _at(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
        if buffer not in self.instances:
            return buffer, indices
        return self.instances[buffer], (self.number, *indices)
