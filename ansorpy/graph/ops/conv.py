"""Convolutions: dense, grouped and depthwise, over any number of spatial axes."""

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
    identity_order,
    is_first_cut,
    product_dtype,
)
from ansorpy.graph.ops.indexing import count_windows, kernel_axes, pad_spatial, position
from ansorpy.graph.ops.matmul import times
from ansorpy.graph.ops.movement import Reshape, Transpose
from ansorpy.graph.ops.names import Names, spatial_axes
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.expr import Axis, Expr, ExprLike
from ansorpy.ir.extents import most
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["Conv", "output_channels"]

_CHANNEL_AXES = {1: ("c",), 2: ("co",), 3: ("g", "co")}
"""Names of a result's axes of channels, by the number of a weight's axes after the kernel's."""


@dataclass(frozen=True)
class Conv(Op):
    """Convolution over the spatial axes; inputs are data and weight.

    Channels first: data ``[n, c, *s]``, weight ``[co, c / groups, *k]``.
    Channels last: data ``[n, *s, c]``, weight ``[*k, c, co]``; with groups
    ``[*k, groups, c / groups, co / groups]``; depthwise (groups of one channel) ``[*k, c]``.
    """

    strides: Shape
    pads_begin: Shape
    pads_end: Shape
    dilations: Shape
    groups: int = 1
    channels_last: bool = False
    pattern: ClassVar[Pattern] = Pattern.COMPLEX
    roles: ClassVar[tuple[str, ...]] = ("data", "weight")

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        data, weight = inputs
        rank = len(self.strides)
        if self.channels_last:
            batch, spatial = data.shape[0], data.shape[1:-1]
            kernel, channels = weight.shape[:rank], output_channels(weight.shape[rank:])
        else:
            batch, spatial = data.shape[0], data.shape[2:]
            kernel, channels = weight.shape[2:], weight.shape[0]
            if weight.shape[1] * self.groups != data.shape[1]:
                raise ValueError(
                    f"the weight expects {weight.shape[1] * self.groups} input channels, "
                    f"the data has {data.shape[1]}"
                )
        out = self._windows(spatial, kernel)
        shape = (batch, *out, channels) if self.channels_last else (batch, channels, *out)
        return TensorType(shape, product_dtype(inputs))

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """``out[n, *o, co]``: over taps, ci ``padded[n, *(o*stride + tap*dilation), ci] * weight``.

        A grouped convolution gives ``[n, *o, groups, co / groups]``, the others ``[n, *o, co]``.
        The loops over taps are outside those over input channels, so both operands are read in
        storage order.
        """
        data, weight = inputs
        rank = len(self.strides)
        kernel, tail = weight.shape[:rank], weight.shape[rank:]
        out = self._windows(data.shape[1:-1], kernel)
        padded = pad_spatial(data, self.pads_begin, self._reached(data, kernel, out), names)
        channels = tail[:1] if len(tail) == 1 else tail[:-2] + tail[-1:]
        spatial = spatial_axes(rank)
        taps = kernel_axes(kernel, spatial)
        is_summed = len(tail) > 1 and tail[-2] > 1
        ci: Axis | int = reduce_axis(tail[-2], name="ci") if is_summed else 0

        def body(*i: Expr) -> Expr:
            batch, pixel, channel = i[0], i[1 : rank + 1], i[rank + 1 :]
            steps = zip(pixel, self.strides, taps, self.dilations, strict=True)
            where = [position(o, stride, k, dilation) for o, stride, k, dilation in steps]
            read = _input_channel(channel, tail, ci)
            element = weight[(*taps, *_weight_channel(channel, tail, ci))]
            axes = [axis for axis in (*taps, ci) if isinstance(axis, Axis)]
            return sum_over(times(padded[(batch, *where, read)], element), axis=axes)

        return compute(
            (data.shape[0], *out, *channels),
            body,
            name=names.fresh("conv"),
            names=("n", *spatial, *_CHANNEL_AXES[len(tail)]),
        )

    def _windows(self, spatial: Shape, kernel: Shape) -> Shape:
        return count_windows(
            spatial, kernel, self.strides, self.pads_begin, self.pads_end, self.dilations
        )

    def _reached(self, data: Tensor, kernel: Shape, out: Shape) -> Shape:
        """The most zeros after *data* that the last window reads along each spatial axis."""
        last = [
            (o - 1) * stride + (k - 1) * dilation + 1 - begin
            for o, stride, k, dilation, begin in zip(
                out, self.strides, kernel, self.dilations, self.pads_begin, strict=True
            )
        ]
        return tuple(max(most(r - size), 0) for r, size in zip(last, data.shape[1:-1], strict=True))

    def arrange(self, operands: Sequence[Stored], shape: Shape) -> Arrangement:
        """Weight ``[co, ci, *k]`` to ``[*k, ci, co]``; grouped and depthwise as in the class."""
        co, ci, *kernel = operands[1].shape
        taps = tuple(range(2, len(kernel) + 2))
        if self.groups == 1:
            weight = Operand((*taps, 1, 0))
        else:
            grouped = Reshape((self.groups, co // self.groups, ci, *kernel))
            turned = Transpose((*(t + 1 for t in taps), 0, 2, 1))
            is_depthwise = ci == co // self.groups == 1
            flat = (Reshape((*kernel, co)),) if is_depthwise else ()
            weight = Operand(identity_order(len(kernel) + 2), (grouped, turned, *flat))
        last = channels_last_order(len(shape))
        return Arrangement(replace(self, channels_last=True), (Operand(last), weight), last)

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return is_first_cut(operands)

    def is_pointwise(self, kernel: Shape) -> bool:
        """True when each output pixel reads only the input pixel at the same position."""
        ones = (1,) * len(kernel)
        return kernel == ones and self.strides == ones and not any(self.pads_begin + self.pads_end)

    @property
    def is_padded(self) -> bool:
        """True when there certainly is a padding stage (end padding alone may never be read)."""
        return any(self.pads_begin)


def output_channels(tail: Shape) -> int:
    """Output channels of a channels-last weight, given its axes after the kernel's."""
    return tail[-1] if len(tail) < 3 else tail[0] * tail[-1]


def _input_channel(channel: Sequence[Expr], tail: Shape, ci: ExprLike) -> ExprLike:
    """The data channel read: itself (depthwise), ``ci`` (dense), or the group's ``ci``-th."""
    if len(tail) == 1:
        return channel[0]
    if len(tail) == 2:
        return ci
    return channel[0] * tail[1] + ci if tail[1] > 1 else channel[0]


def _weight_channel(channel: Sequence[Expr], tail: Shape, ci: ExprLike) -> tuple[ExprLike, ...]:
    if len(tail) == 1:
        return (channel[0],)
    return (ci, channel[0]) if len(tail) == 2 else (channel[0], ci, channel[1])
