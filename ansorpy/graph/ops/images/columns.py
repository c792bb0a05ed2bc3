"""Images put together from overlapping patches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.graph.ops.base import Op, Pattern, Rows, Shape, TensorType, is_first_cut
from ansorpy.graph.ops.indexing import clamped, kernel_axes
from ansorpy.graph.ops.names import Names, spatial_axes
from ansorpy.ir import builders as b
from ansorpy.ir.expr import Axis, Expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute

__all__ = ["Columns"]


@dataclass(frozen=True)
class Columns(Op):
    """The sum of patches ``[n, c, *kernel, *counts]`` at their places in images ``[n, c, *size]``.

    Patch ``o`` has its tap ``t`` at ``o * stride + t * dilation - pad`` along each axis; what lies
    beyond the image is dropped.
    """

    size: Shape
    strides: Shape
    pads_begin: Shape
    dilations: Shape
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        patches = inputs[0]
        if len(patches.shape) != 2 + 2 * len(self.size):
            raise ValueError(f"patches of shape {patches.shape} for an image {self.size}")
        return TensorType((*patches.shape[:2], *self.size), patches.dtype.of_sums)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """``out[n, c, *p]``: the sum over taps of the patch, if any, whose tap lies there."""
        (patches,) = inputs
        rank = len(self.size)
        kernel, counts = patches.shape[2 : 2 + rank], patches.shape[2 + rank :]
        spatial = spatial_axes(rank)
        taps = kernel_axes(kernel, spatial)

        def body(*i: Expr) -> Expr:
            conditions: list[Expr] = []
            windows: list[Expr] = []
            steps = zip(
                i[2:], taps, counts, self.strides, self.pads_begin, self.dilations, strict=True
            )
            for at, tap, count, stride, pad, dilation in steps:
                start = at + pad - tap * dilation if isinstance(tap, Axis) else at + pad
                window = start if stride == 1 else start // stride
                conditions += [window >= 0, window < count]
                conditions += [(start % stride).equal(0)] if stride > 1 else []
                windows.append(clamped(window, 0, count - 1))
            value = b.widened(patches[(*i[:2], *taps, *windows)])
            found = b.select(b.all_of(*conditions), value, 0)
            return b.sum(found, [tap for tap in taps if isinstance(tap, Axis)])

        shape = (*patches.shape[:2], *self.size)
        return compute(shape, body, name=names.fresh("columns"), names=("n", "c", *spatial))

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return is_first_cut(operands)
