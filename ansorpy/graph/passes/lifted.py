"""Operators that compute one row in each iteration of a loop, for the rows of all iterations.

op(x[i], w) for i = 0, 1, ..           -->   op'(x, w), whose first axis is that of the iterations

Movements get one more axis, arithmetic broadcasts along it, and a product of matrices has more
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ansorpy.graph.emits import EmitsBeside
from ansorpy.graph.ir import GraphBuilder
from ansorpy.graph.ops import (
    ArgReduce,
    Cast,
    Concat,
    Elementwise,
    Expand,
    Gather,
    LayerNorm,
    MatMul,
    Op,
    Reduce,
    Reshape,
    Shape,
    Slice,
    Softmax,
    TensorType,
    Transpose,
)
from ansorpy.ir.extents import AnyExtent, prod_of

__all__ = ["Operand", "is_liftable", "lifted"]


@dataclass(frozen=True)
class Operand:
    """An operand outside of the loop: *value* has a row for each iteration, or is the same in all.

    Args:
        shape: What one iteration reads.
    """

    value: str
    shape: Shape
    is_row: bool


@dataclass(frozen=True)
class _Lift:
    emits: EmitsBeside
    count: AnyExtent
    shape: Shape

    def of_rank(self, operand: Operand, rank: int) -> str:
        """All rows of *operand*, each with *rank* axes; itself, if it has no rows."""
        if not operand.is_row:
            return operand.value
        ones = (1,) * (rank - len(operand.shape))
        return self.emits.reshape(operand.value, (self.count, *ones, *operand.shape))

    def repeated(self, operand: Operand) -> str:
        """*operand* with a row for each iteration."""
        if operand.is_row:
            return operand.value
        one = self.emits.reshape(operand.value, (1, *operand.shape))
        return self.emits.emit(Expand((self.count, *operand.shape)), [one])


def _elementwise(lift: _Lift, op: Op, operands: Sequence[Operand]) -> str:
    return lift.emits.emit(op, [lift.of_rank(o, len(lift.shape)) for o in operands])


def _matmul(lift: _Lift, op: Op, operands: Sequence[Operand]) -> str:
    a, b = operands
    if a.is_row and not b.is_row and len(b.shape) == 2:  # one product with the rows of all
        rows = lift.count * prod_of(a.shape[:-1])
        flat = lift.emits.reshape(a.value, (rows, a.shape[-1]))
        product = lift.emits.emit(MatMul(), [flat, b.value])
        return lift.emits.reshape(product, (lift.count, *lift.shape))
    return lift.emits.emit(op, [lift.of_rank(o, len(lift.shape)) for o in operands])


def _gather(lift: _Lift, op: Op, operands: Sequence[Operand]) -> str:
    return lift.emits.emit(op, [o.value for o in operands])


def _expand(lift: _Lift, op: Op, operands: Sequence[Operand]) -> str:
    source = lift.of_rank(operands[0], len(lift.shape))
    return lift.emits.emit(Expand((lift.count, *lift.shape)), [source])


def _concat(lift: _Lift, op: Op, operands: Sequence[Operand]) -> str:
    assert isinstance(op, Concat)
    return lift.emits.emit(Concat(op.axis + 1), list(map(lift.repeated, operands)))


def _behind(
    change: Callable[[Any, AnyExtent], Op],
) -> Callable[[_Lift, Op, Sequence[Operand]], str]:
    """Emits the operator with its attributes changed for one more axis in front."""
    return lambda lift, op, operands: lift.emits.emit(
        change(op, lift.count), [operands[0].value]
    )  # fmt: skip


def _axes(op: Any, count: AnyExtent) -> Op:
    moved: Op = replace(op, axes=tuple(axis + 1 for axis in op.axes))
    return moved


def _slice(op: Slice, count: AnyExtent) -> Op:
    return Slice((0, *op.starts), (count, *op.sizes), (1, *op.steps))


_LIFTS: Mapping[type[Op], Callable[[_Lift, Op, Sequence[Operand]], str]] = {
    Elementwise: _elementwise,
    Cast: _elementwise,
    MatMul: _matmul,
    Gather: _gather,
    Expand: _expand,
    Concat: _concat,
    Reshape: _behind(lambda op, count: Reshape((count, *op.shape))),
    Transpose: _behind(lambda op, count: Transpose((0, *(axis + 1 for axis in op.perm)))),
    Slice: _behind(_slice),
    Reduce: _behind(_axes),
    Softmax: _behind(_axes),
    LayerNorm: _behind(_axes),
    ArgReduce: _behind(lambda op, count: replace(op, axis=op.axis + 1)),
}


def is_liftable(op: Op, rows: Sequence[bool]) -> bool:
    """Whether :func:`lifted` emits *op*, whose operands have *rows* where this says so."""
    if isinstance(op, Gather):
        return op.axis == 0 and not rows[0]
    return type(op) in _LIFTS and not (isinstance(op, MatMul) and op.perm)


def lifted(
    builder: GraphBuilder,
    op: Op,
    operands: Sequence[Operand],
    made: TensorType,
    count: AnyExtent,
    name: str,
) -> str:
    """Emit *op* for *count* iterations; return its value, which has a row for each.

    Args:
        made: The type of what one iteration computes.
        name: What the emitted values are called.
    """
    lift = _Lift(EmitsBeside(builder, name), count, made.shape)
    return _LIFTS[type(op)](lift, op, operands)
