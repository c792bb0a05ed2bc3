"""The patches that a deformable convolution multiplies by its weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import ClassVar

from ansorpy.graph.ops.base import Op, Pattern, Rows, Shape, TensorType, types_of
from ansorpy.graph.ops.images.between import corners, wide
from ansorpy.graph.ops.indexing import position
from ansorpy.graph.ops.names import Names, spatial_axes
from ansorpy.ir.expr import Expr, as_expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute

__all__ = ["DeformedPatches"]


@dataclass(frozen=True)
class DeformedPatches(Op):
    """The samples that each window reads, ``[n, c, *kernel, *windows]``.

    Inputs are an image ``[n, c, *size]``, offsets ``[n, g, *kernel, rank, *windows]``, one set for
    each group of channels, and perhaps a mask ``[n, g, *kernel, *windows]`` to multiply the samples
    by.  Outside the image, there are zeros.
    """

    strides: Shape
    pads_begin: Shape
    dilations: Shape
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x, offsets, *masks = inputs
        rank = len(self.strides)
        inner = (*offsets.shape[2 : 2 + rank], *offsets.shape[3 + rank :])
        groups = (x.shape[0], offsets.shape[1])
        if (offsets.shape[0], offsets.shape[2 + rank]) != (x.shape[0], rank):
            raise ValueError(f"offsets of shape {offsets.shape} for data of shape {x.shape}")
        if any(mask.shape != (*groups, *inner) for mask in masks):
            raise ValueError(f"a mask of shape {masks[0].shape} instead of {(*groups, *inner)}")
        return TensorType((*x.shape[:2], *inner), x.dtype)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """Each sample is the sum of the elements around its place, times their weights."""
        x, offsets, *masks = inputs
        rank = len(self.strides)
        shape = self.infer(types_of(inputs)).shape
        kind = wide(x, offsets)
        channels = x.shape[1] // offsets.shape[1]

        def body(*i: Expr) -> Expr:
            n, c, taps, windows = i[0], i[1], i[2 : 2 + rank], i[2 + rank :]
            group = c // channels if offsets.shape[1] > 1 else as_expr(0)
            places = []
            for d in range(rank):
                start = position(windows[d], self.strides[d], taps[d], self.dilations[d])
                moved = offsets[(n, group, *taps, d, *windows)].astype(kind)
                places.append((start - self.pads_begin[d]).astype(kind) + moved)
            value = reduce(add, corners(x, (n, c), places, zeros=True))
            for mask in masks:
                value = value * mask[(n, group, *taps, *windows)].astype(kind)
            return value.astype(x.dtype)

        spatial = spatial_axes(rank)
        axes = ("n", "c", *(f"k{name}" for name in spatial), *spatial)
        return compute(shape, body, name=names.fresh("deformed"), names=axes)

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return all(o.cut for o in operands)
