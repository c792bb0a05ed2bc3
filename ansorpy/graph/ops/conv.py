"""Convolutions, channels last: dense, grouped and depthwise, over any number of spatial axes."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.graph.op import Conv, Shape
from ansorpy.graph.op import windows as count_windows
from ansorpy.graph.ops.names import Names, spatial_axes
from ansorpy.graph.ops.product import times
from ansorpy.graph.ops.windows import kernel_axes, pad_spatial, position
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.expr import Axis, Expr, ExprLike
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["convolution", "is_pointwise"]


def is_pointwise(op: Conv, kernel: Shape) -> bool:
    """True when each output pixel reads exactly the input pixel at its own place."""
    ones = (1,) * len(kernel)
    return kernel == ones and op.strides == ones and not any(op.pads_begin + op.pads_end)


def convolution(op: Conv, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
    """``out[n, *o, co] = sum over taps, ci of padded[n, *(o*stride + tap*dilation), ci] * weight``.

    Shapes: data ``[n, *s, c]``; the weight as :class:`Conv` states for channels last.  A grouped
    convolution gives ``[n, *o, groups, co / groups]``, the others ``[n, *o, co]``.  The sum has
    the taps outside and the input channels inside, so both operands are read in storage order.
    """
    data, weight = inputs
    rank = len(op.strides)
    kernel, tail = weight.shape[:rank], weight.shape[rank:]
    out = count_windows(
        data.shape[1:-1], kernel, op.strides, op.pads_begin, op.pads_end, op.dilations
    )
    reached = [
        (o - 1) * stride + (k - 1) * dilation + 1 - begin
        for o, stride, k, dilation, begin in zip(
            out, op.strides, kernel, op.dilations, op.pads_begin, strict=True
        )
    ]
    end = tuple(max(r - size, 0) for r, size in zip(reached, data.shape[1:-1], strict=True))
    padded = pad_spatial(data, op.pads_begin, end, names)
    channels = tail[:1] if len(tail) == 1 else tail[:-2] + tail[-1:]
    spatial = spatial_axes(rank)
    taps = kernel_axes(kernel, spatial)
    ci = reduce_axis(tail[-2], name="ci") if len(tail) > 1 and tail[-2] > 1 else None

    def body(*i: Expr) -> Expr:
        batch, pixel, channel = i[0], i[1 : rank + 1], i[rank + 1 :]
        where = [
            position(o, stride, _tap(k), dilation)
            for o, stride, k, dilation in zip(pixel, op.strides, taps, op.dilations, strict=True)
        ]
        read = _input_channel(channel, tail, _tap(ci))
        element = weight[(*map(_tap, taps), *_weight_channel(channel, tail, _tap(ci)))]
        axes = [axis for axis in (*taps, ci) if axis is not None]
        return sum_over(times(padded[(batch, *where, read)], element), axis=axes)

    channel_names = ("co",) if len(channels) == 1 and len(tail) > 1 else ("g", "co")
    channel_names = ("c",) if len(tail) == 1 else channel_names
    return compute(
        (data.shape[0], *out, *channels),
        body,
        name=names.fresh("conv"),
        names=("n", *spatial, *channel_names),
    )


def _tap(axis: Axis | None) -> ExprLike:
    return 0 if axis is None else axis


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
