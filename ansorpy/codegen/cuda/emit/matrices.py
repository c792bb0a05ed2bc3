"""Loads of two neighbouring fragments as one instruction, which loads four matrices."""

from __future__ import annotations

from typing import NamedTuple

from ansorpy.codegen.cuda.emit.emitter import Emitter
from ansorpy.codegen.cuda.emit.mma import PAIRED
from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.loops import For, ForKind, Instruction
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.rewrite.simplify import simplify

__all__ = ["MatrixPair", "matrix_pair"]


class MatrixPair(NamedTuple):
    """Two loads, the second of which starts *step* elements after the first in shared memory."""

    first: Instruction
    second: Instruction
    step: int


def matrix_pair(e: Emitter, s: For) -> MatrixPair | None:
    """The loads of iterations ``2 n`` and ``2 n + 1`` of loop *s*, in terms of its variable ``n``.

    None unless the loop is unrolled, and only loads fragments, an even number of them.
    """
    load = s.body
    if s.kind is not ForKind.UNROLLED or not isinstance(load, Instruction):
        return None
    if load.name not in PAIRED or not isinstance(s.extent, int) or s.extent % 2:
        return None
    (_, place), (source, at) = load.operands
    moves = [linear(index).terms.get(s.var, 0) for index in place]
    offset = simplify(source.offset(at), {**e.ranges, s.var: (0, s.extent - 1)})
    step = linear(offset).terms.get(s.var)
    if sorted(moves) != [*(0 for _ in moves[1:]), 1] or not isinstance(step, int) or source.swizzle:
        return None
    first, second = (substitute(load, {s.var: s.var * 2 + n}) for n in range(2))
    assert isinstance(first, Instruction) and isinstance(second, Instruction)
    return MatrixPair(first, second, step)
