"""Matrix products: batched and not, with matrices chosen by data, and grouped, as convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ansorpy.graph.ops.base import (
    NARROW,
    Op,
    Pattern,
    Rows,
    Shape,
    TensorType,
    broadcast,
    identity_order,
    pick,
    product_dtype,
)
from ansorpy.graph.ops.indexing import broadcast_index, wrapped_index
from ansorpy.graph.ops.names import Names
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.builders import widened
from ansorpy.ir.dtypes import DType, as_dtype
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["ChosenMatMul", "MatMul", "grouped_matmul", "matmul", "times"]


@dataclass(frozen=True)
class MatMul(Op):
    """Matrix product of the last two axes, leading axes broadcast: ``[.., m, k] x [.., k, n]``.

    The result's axes are then permuted as by :class:`Transpose`; ``()`` leaves them in order.
    """

    perm: Shape = ()
    pattern: ClassVar[Pattern] = Pattern.COMPLEX
    roles: ClassVar[tuple[str, ...]] = ("data", "weight")

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        a, b = inputs
        if a.shape[-1] != b.shape[-2]:
            raise ValueError(f"inner sizes differ: {a.shape} x {b.shape}")
        batch = broadcast([a.shape[:-2], b.shape[:-2]])
        shape = (*batch, a.shape[-2], b.shape[-1])
        turned = pick(shape, self.perm) if self.perm else shape
        return TensorType(turned, product_dtype(inputs))

    def evaluate(self, inputs: Sequence[NDArray[Any]]) -> NDArray[Any] | None:
        """Zeros, where sums have no terms, because no definition reads what has no elements."""
        if inputs[0].shape[-1] != 0:
            return None
        found = self.infer([TensorType(x.shape, as_dtype(x.dtype)) for x in inputs])
        return np.zeros(found.shape, found.dtype.numpy)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        return matmul(inputs, names, self.perm)

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        """The first axis must be that of exactly the operands that are cut."""
        if self.perm[:1] not in ((), (0,)):
            return False
        a, b = operands
        if a.cut and not b.cut and len(b.shape) == 2:
            return len(a.shape) == len(shape)
        return len(shape) > 2 and all(o.spans(len(shape)) for o in operands)


@dataclass(frozen=True)
class ChosenMatMul(Op):
    """Each matrix of a batch times the one of several that data choose: ``a[i] x b[choice[i]]``.

    Inputs are ``a [n, m, k]``, ``b [several, k, j]`` and integers ``choice [n]``; the result is
    ``[n, m, j]``.  A choice out of range wraps around.  Mixtures of experts need it.
    """

    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        a, b, choice = inputs
        if a.shape[-1] != b.shape[-2]:
            raise ValueError(f"inner sizes differ: {a.shape} x {b.shape}")
        if choice.shape != a.shape[:1] or not choice.dtype.is_int:
            raise ValueError(f"{choice.shape} choices for {a.shape[0]} matrices")
        return TensorType((*a.shape[:-1], b.shape[-1]), product_dtype([a, b]))

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """``out[n, i, j] = sum over k of a[n, i, k] * b[choice[n] % several, k, j]``."""
        a, b, choice = inputs
        k = reduce_axis(a.shape[-1], name="k")

        def body(n: Expr, i: Expr, j: Expr) -> Expr:
            which = wrapped_index(choice[n], b.shape[0])
            return sum_over(times(a[n, i, k], b[which, k, j]), axis=k)

        return compute(
            (*a.shape[:-1], b.shape[-1]), body, name=names.fresh("matmul"), names=("n", "i", "j")
        )

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        a, b, choice = operands
        return a.cut and choice.cut and not b.cut


def matmul(
    inputs: Sequence[Tensor], names: Names, perm: Shape = (), *, wide: bool = False
) -> ComputeOp:
    """``out[.., i, j] = sum over k of a[.., i, k] * b[.., k, j]``, batch axes broadcast.

    The axes of ``out`` are permuted by *perm*; ``()`` leaves them in order.  If *wide*, ``out`` has
    the type in which sums are computed: float32 for 16-bit floats.
    """
    a, b = inputs
    batch = broadcast([a.shape[:-2], b.shape[:-2]])
    k = reduce_axis(a.shape[-1], name="k")
    shape = (*batch, a.shape[-2], b.shape[-1])
    axes = (*(f"b{d}" for d in range(len(batch))), "i", "j")
    perm = perm or identity_order(len(shape))

    def body(*at: Expr) -> Expr:
        index = [at[perm.index(d)] for d in range(len(shape))]
        outer, (i, j) = index[:-2], index[-2:]
        left = broadcast_index(a.shape[:-2], outer, batch)
        right = broadcast_index(b.shape[:-2], outer, batch)
        x, y = a[(*left, i, k)], b[(*right, k, j)]
        return sum_over(widened(x) * widened(y) if wide else times(x, y), axis=k)

    return compute(
        pick(shape, perm),
        body,
        name=names.fresh("matmul"),
        names=tuple(axes[p] for p in perm),
    )


def grouped_matmul(data: Tensor, weight: Tensor, names: Names) -> ComputeOp:
    """``out[i, g, co] = sum over ci of data[i, g * c + ci] * weight[g, ci, co]``.

    Shapes: data ``[pixels, groups * c]``, weight ``[groups, c, co]``.
    """
    groups, depth, width = weight.shape
    ci = reduce_axis(depth, name="ci")
    return compute(
        (data.shape[0], groups, width),
        lambda i, g, co: sum_over(times(data[i, g * depth + ci], weight[g, ci, co]), axis=ci),
        name=names.fresh("conv"),
    )


def times(x: Expr, y: Expr) -> Expr:
    """``x * y``; the product of two 8-bit integers is int32."""
    if x.dtype in NARROW and y.dtype in NARROW:
        return x.astype(DType.INT32) * y.astype(DType.INT32)
    return x * y
