"""Matrix products: batched and not, with packed weights, and grouped, as pointwise convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.graph.ops.base import (
    NARROW,
    Op,
    Pattern,
    Rows,
    Shape,
    TensorType,
    broadcast,
    identity_order,
    is_first_cut,
    product_dtype,
)
from ansorpy.graph.ops.indexing import broadcast_index
from ansorpy.graph.ops.names import Names
from ansorpy.ir.builders import select, widened
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["MatMul", "PackedMatMul", "grouped_matmul", "matmul", "times"]


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
        turned = tuple(shape[p] for p in self.perm) if self.perm else shape
        return TensorType(turned, product_dtype(inputs))

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        return matmul(inputs, names, self.perm)

    def on_rows(self, operands: Sequence[Rows], shape: Shape, rows: int) -> Op | None:
        """The first axis must be that of exactly the operands that are cut."""
        if self.perm[:1] not in ((), (0,)):
            return None
        a, b = operands
        if a.cut and not b.cut and len(b.shape) == 2:
            return self if len(a.shape) == len(shape) else None
        return self if len(shape) > 2 and all(o.spans(len(shape)) for o in operands) else None


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
        tuple(shape[p] for p in perm),
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


@dataclass(frozen=True)
class PackedMatMul(Op):
    """``x w`` where ``w[k, n] = (code[k, n] - zero[k // block, n]) * scale[k // block, n]``.

    Inputs: x ``[.., K]``, bytes ``[ceil(K / codes of a byte), N]``, scales and zeros
    ``[ceil(K / block), N]`` of the type of x.  Each byte has codes of ``bits`` bits for successive
    k, the first one in its lowest bits.
    """

    bits: int
    block: int
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x, packed = inputs[:2]
        return TensorType((*x.shape[:-1], packed.shape[-1]), x.dtype)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """One stage, in which a code is unpacked where it is multiplied.

        A stage of its own for the weights would be computed once, and kept as floats.
        """
        x, packed, scales, zeros = inputs
        k, each = reduce_axis(x.shape[-1], name="k"), 8 // self.bits

        def body(*i: Expr) -> Expr:
            *row, n = i
            byte = packed[k // each, n].astype(DType.INT32)
            code = self._code(byte, k % each, 0, each).astype(x.dtype)
            weight = (code - zeros[k // self.block, n]) * scales[k // self.block, n]
            return sum_over(x[(*row, k)] * weight, axis=k)

        shape = (*x.shape[:-1], packed.shape[-1])
        axes = (*(f"b{d}" for d in range(len(shape) - 2)), *("i", "j")[-len(shape) :])
        return compute(shape, body, name=names.fresh(self.label), names=axes)

    def _code(self, byte: Expr, place: Expr, first: int, end: int) -> Expr:
        """The code at *place* of *byte*, which is one of *first* to *end* - 1."""
        if end - first == 1:
            shifted = byte if first == 0 else byte // (1 << (first * self.bits))
            return shifted if end * self.bits == 8 else shifted % (1 << self.bits)
        middle = (first + end) // 2
        return select(
            place < middle,
            self._code(byte, place, first, middle),
            self._code(byte, place, middle, end),
        )

    def on_rows(self, operands: Sequence[Rows], shape: Shape, rows: int) -> Op | None:
        return self if is_first_cut(operands) and len(shape) > 1 else None
