"""Reject programs whose straight-line code takes too long to build."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TypeGuard

from ansorpy.codegen.vectors import lanes_of
from ansorpy.ir.expr import AxisKind, Call, Const, Expr, Load, Select, Var, children, has_load
from ansorpy.ir.tensor import ComputeOp
from ansorpy.rules.base import AnnotationRule
from ansorpy.rules.matching.relations import is_input
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.lowering.loop_kinds import loop_kinds
from ansorpy.schedule.space import Constraint, Space
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.tables.formulas import Formula
from ansorpy.schedule.tables.size import Size, at_most, ceil_div, size_min
from ansorpy.target import Target

__all__ = [
    "CALL_INSTRUCTIONS", "MOST_VECTORS", "TREE_INSTRUCTIONS", "LimitCodeSize", "instructions",
]  # fmt: skip

MOST_VECTORS = 16
"""The generator emits a loop if a vector loop has more vectors than this."""
CALL_INSTRUCTIONS = 12
"""Approximate instructions of an elementary function."""
TREE_INSTRUCTIONS = 12
"""Approximate instructions that add up the lanes of a vector at the end of a reduction."""


@dataclass(frozen=True)
class LimitCodeSize(AnnotationRule):
    """Reject stages whose unrolled and vectorised body has more than ``most`` instructions.

    Must come after the rules that vectorise and unroll.  Build time is proportional to the number
    of instructions, and code that overflows the instruction cache runs no faster than a loop.
    A body that exceeds the limit by itself, because a long chain of stages is inlined into it, may
    occur once, and one whose definition asks to unroll axes (``Attrs.unroll_axes``), once for each
    of their elements: most of these instructions fold.
    Differs: TVM's ``auto_unroll_max_step`` limits iterations, regardless of their bodies.
    """

    most: int = 1536

    def declare(self, space: Space, target: Target) -> Space:
        state = space.state
        inlined = state.inlined_dag.ops
        limits = [
            self._limit(inlined[stage.name], stage, target)
            for stage in state.stages if not is_input(state, stage) and not stage.inlined
        ]  # fmt: skip
        return Space(state, (*space.constraints, *limits))

    def _limit(self, op: ComputeOp, stage: Stage, target: Target) -> Constraint:
        body = _operations(op.body) * _asked_copies(op)
        most = max(self.most, body + TREE_INSTRUCTIONS * (stage.lanes is not None))

        def holds(bounds: Bounds) -> Size:
            # A stage that no decision affects is not rejected.
            if not any(isinstance(size, Formula) for size in _sizes(bounds, stage)):
                return 1
            return at_most(instructions(bounds, stage, target), most)

        return Constraint(f"{stage.name}.code", holds)


def _sizes(bounds: Bounds, stage: Stage) -> Iterator[Size]:
    """Everything that decides how long the body of *stage* becomes: its extents and its counts."""
    yield from bounds.extents(stage.name).values()
    yield bounds.number(stage.max_unroll)
    for counted in (stage.parallel, stage.vectorize):
        if counted is not None:
            yield bounds.number(counted.count)


def instructions(bounds: Bounds, stage: Stage, target: Target) -> Size:
    """Predict the instructions in the longest straight-line body of *stage* from its loops."""
    op, extents = bounds.op(stage.name), bounds.extents(stage.name)
    kinds = loop_kinds(bounds, stage.name)
    vectors: Size = 1
    copies: Size = 1
    sums: Size = 1
    for it in stage.iters:
        kind, extent = kinds[it.name], extents[it.name]
        vectors = vectors * _where(kind.vector, extent)
        copies = copies * _where(kind.unroll, extent)
        if it.kind is AxisKind.SPACE:
            sums = sums * _where(kind.unroll, extent)
    vectors = ceil_div(vectors, lanes_of(op, target))
    straight = copies * size_min(vectors, MOST_VECTORS) * _operations(op.body)
    return straight if stage.lanes is None else straight + sums * TREE_INSTRUCTIONS


def _asked_copies(op: ComputeOp) -> int:
    """How many copies of the body the definition itself asks for."""
    asked = op.attrs.unroll_axes
    return prod(axis.extent for axis in (*op.axes, *op.reduce_axes) if axis.name in asked)


def _where(mask: Size, extent: Size) -> Size:
    """*extent* where *mask*, else 1."""
    return 1 + mask * (extent - 1)


@lru_cache(maxsize=4096)
def _operations(body: Expr) -> int:
    """Instructions to evaluate *body* once; index computations are shared or folded."""
    total, seen, stack = 0, set[Expr](), [body]
    while stack:
        e = stack.pop()
        if e in seen or isinstance(e, Const | Var):
            continue
        seen.add(e)
        if _is_decided(e):
            stack.append(max(e.then, e.other, key=_operations))
            continue
        total += CALL_INSTRUCTIONS if isinstance(e, Call) else 1
        stack.extend(() if isinstance(e, Load) else children(e))
    return total


def _is_decided(e: Expr) -> TypeGuard[Select]:
    """Whether *e* is a select whose condition reads no element."""
    return isinstance(e, Select) and not has_load(e.cond)
