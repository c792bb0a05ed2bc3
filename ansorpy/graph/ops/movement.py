"""Operators that are only index maps: each output element is an unchanged input element."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ansorpy.graph.ops.base import (
    Arrangement,
    Op,
    Operand,
    Pattern,
    Rows,
    Shape,
    Stored,
    TensorType,
    broadcast,
    identity_order,
    is_first_cut,
    pick,
    runs,
    types_of,
)
from ansorpy.graph.ops.indexing import broadcast_index
from ansorpy.graph.ops.names import Names
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, ExprLike, as_expr
from ansorpy.ir.extents import AnyExtent, dims_of, most, prod_of
from ansorpy.ir.tensor import ComputeOp, Tensor, compute

__all__ = [
    "Expand",
    "Moved",
    "Movement",
    "Repeat",
    "Reshape",
    "Shuffle",
    "Slice",
    "Spread",
    "Transpose",
    "digits",
    "flat",
]


class Movement(Op):
    """Base of the index maps of one operand, which cost nothing if their reader applies them."""

    pattern: ClassVar[Pattern] = Pattern.INJECTIVE

    @abstractmethod
    def source_index(self, i: Sequence[Expr], have: Shape) -> tuple[Expr, ...]:
        """The index of output element *i* in the operand of shape *have*."""

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """A stage that stores the elements that the movement reads."""
        (x,) = inputs
        shape = self.infer(types_of(inputs)).shape
        return compute(
            shape, lambda *i: x[self.source_index(i, x.shape)], name=names.fresh(self.label)
        )


@dataclass(frozen=True)
class Reshape(Movement):
    """The same elements in the same row-major order, with another shape."""

    shape: Shape

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        if prod_of(self.shape) != inputs[0].size:
            raise ValueError(f"{inputs[0].shape} cannot be reshaped to {self.shape}")
        return TensorType(self.shape, inputs[0].dtype)

    def source_index(self, i: Sequence[Expr], have: Shape) -> tuple[Expr, ...]:
        return tuple(digits(flat(i, self.shape), have))

    def arrange(self, operands: Sequence[Stored], shape: Shape) -> Arrangement:
        """In the stored order if the axes that merge are adjacent in both orders."""
        (x,) = operands
        order = _regrouped(x.shape, self.shape, x.order)
        if order is None:
            model = Operand(identity_order(len(x.shape)))
            return Arrangement(self, (model,), identity_order(len(self.shape)))
        return Arrangement(Reshape(pick(self.shape, order)), (Operand(x.order),), order)

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return is_first_cut(operands)

    def on_rows(self, rows: int) -> Op:
        return Reshape((rows, *self.shape[1:]))

    def evaluate(self, inputs: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return inputs[0].reshape(self.shape)


@dataclass(frozen=True)
class Expand(Movement):
    """Broadcast to ``shape``: repeat axes of extent one, and add axes in front."""

    shape: Shape

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        if broadcast([inputs[0].shape, self.shape]) != self.shape:
            raise ValueError(f"{inputs[0].shape} cannot be expanded to {self.shape}")
        return TensorType(self.shape, inputs[0].dtype)

    def source_index(self, i: Sequence[Expr], have: Shape) -> tuple[Expr, ...]:
        return tuple(as_expr(e) for e in broadcast_index(have, i, self.shape))

    def reordered(self, order: Shape) -> Op | None:
        return Expand(pick(self.shape, order)) if len(order) == len(self.shape) else None

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        before = operands[0].shape
        keeps = before[0] == self.shape[0] and len(before) == len(self.shape)
        return is_first_cut(operands) and keeps

    def on_rows(self, rows: int) -> Op:
        return Expand((rows, *self.shape[1:]))

    def evaluate(self, inputs: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return np.broadcast_to(inputs[0], self.shape)


@dataclass(frozen=True)
class Transpose(Movement):
    """Output axis ``d`` is input axis ``perm[d]``."""

    perm: Shape

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(pick(inputs[0].shape, self.perm), inputs[0].dtype)

    def source_index(self, i: Sequence[Expr], have: Shape) -> tuple[Expr, ...]:
        return tuple(i[self.perm.index(d)] for d in range(len(self.perm)))

    def arrange(self, operands: Sequence[Stored], shape: Shape) -> Arrangement:
        """The axes of the operand get other names; nothing moves."""
        (x,) = operands
        renamed = tuple(self.perm.index(a) for a in x.order)
        return Arrangement(None, (Operand(x.order),), renamed)

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return is_first_cut(operands) and self.perm[0] == 0

    def evaluate(self, inputs: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return inputs[0].transpose(self.perm)


@dataclass(frozen=True)
class Shuffle(Movement):
    """Split ``axis`` into ``factors``, permute the new axes by ``perm``, and merge them again."""

    axis: int
    factors: Shape
    perm: Shape

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]

    def source_index(self, i: Sequence[Expr], have: Shape) -> tuple[Expr, ...]:
        parts = digits(i[self.axis], pick(self.factors, self.perm))
        source = [parts[self.perm.index(d)] for d in range(len(self.factors))]
        return (*i[: self.axis], flat(source, self.factors), *i[self.axis + 1 :])

    def reordered(self, order: Shape) -> Op:
        return replace(self, axis=order.index(self.axis))

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return is_first_cut(operands) and self.axis > 0

    def evaluate(self, inputs: Sequence[NDArray[Any]]) -> NDArray[Any]:
        (x,) = inputs
        before, rank = self.axis, len(self.factors)
        split = x.reshape(*x.shape[:before], *self.factors, *x.shape[before + 1 :])
        turned = (before + p for p in self.perm)
        order = [*range(before), *turned, *range(before + rank, split.ndim)]
        return split.transpose(order).reshape(x.shape)


@dataclass(frozen=True)
class Repeat(Movement):
    """Repeat each element ``times[d]`` times in a row along axis ``d``."""

    times: Shape

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        shape = tuple(e * k for e, k in zip(inputs[0].shape, self.times, strict=True))
        return TensorType(shape, inputs[0].dtype)

    def source_index(self, i: Sequence[Expr], have: Shape) -> tuple[Expr, ...]:
        return tuple(a if k == 1 else a // k for a, k in zip(i, self.times, strict=True))

    def reordered(self, order: Shape) -> Op:
        return replace(self, times=pick(self.times, order))

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return is_first_cut(operands) and self.times[0] == 1

    def evaluate(self, inputs: Sequence[NDArray[Any]]) -> NDArray[Any]:
        (x,) = inputs
        grid = (np.arange(e * k) // k for e, k in zip(x.shape, self.times, strict=True))
        return np.asarray(x[np.ix_(*grid)])


@dataclass(frozen=True)
class Spread(Repeat):
    """:class:`Repeat`, cut to ``shape``; not computed ahead for constants, which takes memory."""

    shape: Shape

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        whole = super().infer(inputs).shape
        if len(self.shape) != len(whole) or any(
            most(have - want) < 0 for have, want in zip(whole, self.shape, strict=True)
        ):
            raise ValueError(f"{inputs[0].shape} repeated {self.times} has no part {self.shape}")
        return TensorType(self.shape, inputs[0].dtype)

    def reordered(self, order: Shape) -> Op:
        return Spread(pick(self.times, order), pick(self.shape, order))

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return False

    def evaluate(self, inputs: Sequence[NDArray[Any]]) -> None:  # type: ignore[override]
        return None


@dataclass(frozen=True)
class Slice(Movement):
    """Element ``i`` along axis ``d`` is input element ``starts[d] + i * steps[d]``."""

    starts: Shape
    sizes: Shape
    steps: Shape

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(self.sizes, inputs[0].dtype)

    def source_index(self, i: Sequence[Expr], have: Shape) -> tuple[Expr, ...]:
        scaled = [a if k == 1 else a * k for a, k in zip(i, self.steps, strict=True)]
        return tuple(a if s == 0 else a + s for a, s in zip(scaled, self.starts, strict=True))

    def reordered(self, order: Shape) -> Op:
        return Slice(*(pick(values, order) for values in (self.starts, self.sizes, self.steps)))

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        keeps = (self.starts[0], self.sizes[0], self.steps[0]) == (0, operands[0].shape[0], 1)
        return is_first_cut(operands) and keeps

    def on_rows(self, rows: int) -> Op:
        return replace(self, sizes=(rows, *self.sizes[1:]))

    def evaluate(self, inputs: Sequence[NDArray[Any]]) -> NDArray[Any] | None:
        if dims_of(self.starts):
            return None
        columns = zip(self.starts, self.sizes, self.steps, strict=True)
        return np.asarray(inputs[0][np.ix_(*(s + np.arange(n) * k for s, n, k in columns))])


@dataclass(frozen=True, eq=False)
class Moved(Tensor):
    """``op(source)``, read in place: an index map without a stage of its own."""

    op: Movement
    source: Tensor

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.source.name

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.op.infer(types_of([self.source])).shape

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.source.dtype

    def __getitem__(self, indices: ExprLike | tuple[ExprLike, ...]) -> Expr:
        items = indices if isinstance(indices, tuple) else (indices,)
        index = [as_expr(item, DType.INT64) for item in items]
        return self.source[self.op.source_index(index, self.source.shape)]


def flat(index: Sequence[Expr], shape: Shape) -> Expr:
    """Row-major position of *index* in *shape*; axes of extent one contribute nothing."""
    total = as_expr(0)
    first = True
    for i, extent in zip(index, shape, strict=True):
        if extent == 1:
            continue
        total = i if first else total * extent + i
        first = False
    return total


def digits(position: Expr, shape: Shape) -> list[Expr]:
    """The index in *shape* whose row-major position is *position*."""
    found: list[Expr] = []
    stride: AnyExtent = 1
    for d, extent in reversed([*enumerate(shape)]):
        if extent == 1:
            found.append(as_expr(0))
            continue
        value = position if stride == 1 else position // stride
        is_leading = all(e == 1 for e in shape[:d])
        found.append(value if is_leading else value % extent)
        stride *= extent
    return found[::-1]


def _regrouped(before: Shape, after: Shape, order: Shape) -> Shape | None:
    """Stored order of *after*, reshaped from *before* stored in *order*; None if impossible.

    A reshape merges runs of axes and splits them again.  Runs that are adjacent and in sequence in
    the stored order can be reshaped in place.  Axes of extent one may be anywhere.
    """
    places: list[tuple[int, Shape]] = []
    for run, made in runs(before, after):
        stored = [order.index(axis) for axis in run if before[axis] != 1]
        if stored and stored != list(range(stored[0], stored[0] + len(stored))):
            return None
        first = stored or [order.index(axis) for axis in run] or [len(order)]
        places.append((first[0], made))
    return tuple(axis for _, made in sorted(places, key=lambda p: p[0]) for axis in made)
