"""Reductions over windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ansorpy.graph.ops.base import (
    Arrangement,
    Op,
    Operand,
    Pattern,
    Rows,
    Shape,
    Stored,
    TensorType,
    channels_last_order,
    is_first_cut,
)
from ansorpy.graph.ops.indexing import count_windows, guarded, kernel_axes, position
from ansorpy.graph.ops.names import Names, spatial_axes
from ansorpy.graph.ops.reduce import reduced_dtype, reduced_value
from ansorpy.ir.expr import Axis, Expr, ReduceKind
from ansorpy.ir.extents import most
from ansorpy.ir.tensor import ComputeOp, Tensor, compute

__all__ = ["Pool"]


@dataclass(frozen=True)
class Pool(Op):
    """Reduce each window; positions outside the data count as the reduction's identity.

    Sums of 16-bit floats are float32, like those of :class:`Reduce`.
    """

    kind: ReduceKind
    kernel: Shape
    strides: Shape
    pads_begin: Shape
    pads_end: Shape
    dilations: Shape
    channels_last: bool = False
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        (data,) = inputs
        spatial = data.shape[1:-1] if self.channels_last else data.shape[2:]
        out = self._windows(spatial)
        dtype = reduced_dtype(self.kind, data.dtype)
        if self.channels_last:
            return TensorType((data.shape[0], *out, data.shape[-1]), dtype)
        return TensorType((*data.shape[:2], *out), dtype)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """``out[n, *o, c]`` = the reduction of ``data[n, *(o*stride + tap*dilation - pad), c]``.

        A tap outside the data gives the reduction's identity; only borders that can be crossed are
        guarded.
        """
        (data,) = inputs
        rank = len(self.kernel)
        spatial = spatial_axes(rank)
        size = data.shape[1:-1]
        out = self._windows(size)
        reach = [
            (o - 1) * stride + (k - 1) * dilation - pad
            for o, stride, k, dilation, pad in zip(
                out, self.strides, self.kernel, self.dilations, self.pads_begin, strict=True
            )
        ]
        guards = [
            (d + 1, self.pads_begin[d] > 0, most(reach[d] - size[d]) >= 0) for d in range(rank)
        ]
        taps = kernel_axes(self.kernel, spatial)
        fill = self.kind.identity(data.dtype)

        def body(*i: Expr) -> Expr:
            steps = zip(i[1:-1], self.strides, taps, self.dilations, strict=True)
            where = [position(o, s, k, dilation) for o, s, k, dilation in steps]
            shifted = [x - pad if pad else x for x, pad in zip(where, self.pads_begin, strict=True)]
            value = guarded(data, (i[0], *shifted, i[-1]), guards, fill)
            return reduced_value(self.kind, value, [k for k in taps if isinstance(k, Axis)])

        return compute(
            (data.shape[0], *out, data.shape[-1]),
            body,
            name=names.fresh(self.label),
            names=("n", *spatial, "c"),
        )

    def _windows(self, spatial: Shape) -> Shape:
        return count_windows(
            spatial, self.kernel, self.strides, self.pads_begin, self.pads_end, self.dilations
        )

    def arrange(self, operands: Sequence[Stored], shape: Shape) -> Arrangement:
        last = channels_last_order(len(shape))
        return Arrangement(replace(self, channels_last=True), (Operand(last),), last)

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return is_first_cut(operands)

    @property
    def label(self) -> str:
        return f"{self.kind.value}pool"
