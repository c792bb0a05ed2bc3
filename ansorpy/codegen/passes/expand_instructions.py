"""Expand instructions into the loops they stand for, on targets without them."""

from __future__ import annotations

from ansorpy.ir.intrinsics import expand, intrinsic
from ansorpy.ir.loops import Instruction, Program, Stmt
from ansorpy.ir.rewrite.rewriter import Rewriter

__all__ = ["expand_instructions"]


def expand_instructions(program: Program) -> Program:
    """Replace each single-thread instruction of *program* by its pattern as loops.

    This runs before storage planning and tile detection, so that they see every access.

    Raises:
        UsageError: An instruction is not declared.
        LoweringError: Its operands do not fit its pattern.
    """
    return program.with_body(_Expanded().stmt(program.body))


class _Expanded(Rewriter):
    def stmt(self, s: Stmt) -> Stmt:
        if isinstance(s, Instruction) and not intrinsic(s.name).fragments:
            return expand(s)
        return super().stmt(s)
