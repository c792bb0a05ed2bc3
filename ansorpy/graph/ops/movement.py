"""Operators that only move elements: each output element is one input element or a fill value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from ansorpy.graph.op import (
    Concat,
    Expand,
    Pad,
    PadMode,
    Repeat,
    Reshape,
    Shape,
    Shuffle,
    Slice,
    TensorType,
    Transpose,
)
from ansorpy.graph.ops.names import Names
from ansorpy.graph.ops.windows import broadcast_index, guarded
from ansorpy.ir.builders import maximum, minimum, select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, ExprLike, as_expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute

__all__ = ["Move", "Moved", "concat", "move", "pad", "source_index"]

Move = Expand | Repeat | Reshape | Shuffle | Slice | Transpose


def concat(op: Concat, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
    """One stage that selects the part by the index along ``op.axis`` (may be negative).

    The selects halve the parts: an element asks few of them, and the expression is not deep.
    """
    axis = op.axis % inputs[0].ndim
    *starts, extent = accumulate((t.shape[axis] for t in inputs), initial=0)
    shape = list(inputs[0].shape)
    shape[axis] = extent

    def body(*i: Expr) -> Expr:
        def among(first: int, end: int) -> Expr:
            if end - first == 1:
                local = i[axis] - starts[first] if first else i[axis]
                return inputs[first][(*i[:axis], local, *i[axis + 1 :])]
            middle = (first + end) // 2
            return select(i[axis] < starts[middle], among(first, middle), among(middle, end))

        return among(0, len(inputs))

    return compute(shape, body, name=names.fresh("concat"))


def move(op: Move, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
    """A stage that stores the elements *op* reads."""
    (x,) = inputs
    shape = op.infer([TensorType(x.shape, x.dtype)]).shape
    axes = tuple(f"i{d}" for d in range(len(shape)))
    return compute(
        shape,
        lambda *i: x[source_index(op, i, x.shape)],
        name=names.fresh(op.label),
        names=axes,
    )


def source_index(op: Move, i: Sequence[Expr], have: Shape) -> tuple[Expr, ...]:
    """The index of output element *i* of *op* in its operand of shape *have*."""
    match op:
        case Expand(shape):
            return tuple(as_expr(e) for e in broadcast_index(have, i, shape))
        case Repeat(times):
            return tuple(a if k == 1 else a // k for a, k in zip(i, times, strict=True))
        case Transpose(perm):
            return tuple(i[perm.index(d)] for d in range(len(perm)))
        case Slice(starts, _, steps):
            scaled = [a if k == 1 else a * k for a, k in zip(i, steps, strict=True)]
            return tuple(a + s if s else a for a, s in zip(scaled, starts, strict=True))
        case Shuffle(axis, factors, perm):
            parts = _digits(i[axis], tuple(factors[p] for p in perm))
            source = [parts[perm.index(d)] for d in range(len(factors))]
            return (*i[:axis], _flat(source, factors), *i[axis + 1 :])
        case Reshape(shape):
            return tuple(_digits(_flat(i, shape), have))


@dataclass(frozen=True, eq=False)
class Moved(Tensor):
    """``op(source)``, read in place: an index map without a stage of its own."""

    op: Move
    source: Tensor

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.source.name

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.op.infer([TensorType(self.source.shape, self.source.dtype)]).shape

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.source.dtype

    def __getitem__(self, indices: ExprLike | tuple[ExprLike, ...]) -> Expr:
        items = indices if isinstance(indices, tuple) else (indices,)
        index = [as_expr(item, DType.INT64) for item in items]
        return self.source[source_index(self.op, index, self.source.shape)]


def pad(op: Pad, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
    """Padding: constants by a guard, edge and reflection by folding the index back inside."""
    (x,) = inputs
    shape = [b + e + a for b, e, a in zip(op.begin, x.shape, op.end, strict=True)]

    def body(*i: Expr) -> Expr:
        shifted = [a - b if b else a for a, b in zip(i, op.begin, strict=True)]
        if op.mode is PadMode.CONSTANT:
            guards = [(d, op.begin[d] > 0, op.end[d] > 0) for d in range(x.ndim)]
            return guarded(x, shifted, guards, op.value)
        fold = _clamped if op.mode is PadMode.EDGE else _reflected
        return x[tuple(fold(a, e) for a, e in zip(shifted, x.shape, strict=True))]

    return compute(shape, body, name=names.fresh("pad"))


def _clamped(index: Expr, extent: int) -> Expr:
    return minimum(maximum(index, 0), extent - 1)


def _reflected(index: Expr, extent: int) -> Expr:
    """Mirror at both ends without repeating the border (ONNX ``reflect``, pads < extent)."""
    inside = maximum(index, 0 - index)
    beyond = inside - (extent - 1)
    return (extent - 1) - maximum(beyond, 0 - beyond)


def _flat(index: Sequence[Expr], shape: Shape) -> Expr:
    """Row-major position of *index* in *shape*; axes of extent one contribute nothing."""
    total = as_expr(0)
    first = True
    for i, extent in zip(index, shape, strict=True):
        if extent == 1:
            continue
        total = i if first else total * extent + i
        first = False
    return total


def _digits(position: Expr, shape: Shape) -> list[Expr]:
    """The index in *shape* whose row-major position is *position*."""
    digits: list[Expr] = []
    stride, leading = 1, True
    sizes = list(shape)
    for d in range(len(sizes) - 1, -1, -1):
        if sizes[d] == 1:
            digits.append(as_expr(0))
            continue
        value = position if stride == 1 else position // stride
        leading = all(e == 1 for e in sizes[:d])
        digits.append(value if leading else value % sizes[d])
        stride *= sizes[d]
    return digits[::-1]
