"""Shared parts of convolutions and pools: kernels, groups, padding and ceiling rules, bias."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Conv, Fn, Pad, PadMode, Shape
from ansorpy.ir.extents import AnyExtent, dims_of, extreme
from ansorpy.ir.symbols import SizeOp

__all__ = [
    "Windows", "biased", "conv_op", "kernel_of", "padded", "require_known_pads",
    "require_positive", "windows_of",
]  # fmt: skip


@dataclass(frozen=True)
class Windows:
    """Kernel, strides, dilations and padding on both sides, one number per spatial axis.

    ``declared_end`` is the end padding given in the model; ``pads_end`` may be larger where
    ``ceil_mode`` lets a last window extend past it, or smaller where no window reads it.
    """

    kernel: Shape
    strides: Shape
    dilations: Shape
    pads_begin: Shape
    pads_end: Shape
    declared_end: Shape


def kernel_of(ctx: NodeContext, divided: str, operand: int = 1) -> tuple[Shape, int]:
    """The spatial extents of the weight, which is the given operand, and the number of groups.

    *divided* describes the weight's first axis in messages; its extent must be a multiple of the
    number of groups.
    """
    weight = ctx.shape(operand)
    if not 3 <= len(weight) <= 5:
        raise Unsupported(f"weight shape {weight}", "one to three spatial axes are supported")
    if len(ctx.shape()) != len(weight):
        raise Unsupported(f"weight shape {weight}", f"the data has {len(ctx.shape())} dimensions")
    kernel = ctx.ints("kernel_shape", weight[2:])
    if kernel != weight[2:]:
        raise Unsupported(f"kernel_shape={kernel}", f"the weight has {weight[2:]}")
    groups = ctx.attr("group", 1)
    if groups < 1 or weight[0] % groups:
        raise Unsupported(f"group={groups}", f"it must divide the {weight[0]} {divided}")
    return kernel, groups


def conv_op(ctx: NodeContext, operand: int) -> Conv:
    """The convolution that *ctx*'s node describes; its weight is the given operand.

    Its pads must not depend on sizes.
    """
    kernel, groups = kernel_of(ctx, "output channels", operand)
    w = windows_of(ctx, ctx.shape()[2:], kernel)
    require_known_pads(ctx, w)
    return Conv(w.strides, w.pads_begin, w.pads_end, w.dilations, groups)


def require_known_pads(ctx: NodeContext, w: Windows) -> None:
    """Refuse pads that depend on sizes."""
    for pad in (*w.pads_begin, *w.pads_end):
        ctx.number(pad, "pads")


def padded(ctx: NodeContext, value: str, w: Windows, fill: float) -> tuple[str, Windows]:
    """*value*, padded as far as pads depend on sizes, and the windows over it."""
    if not dims_of((*w.pads_begin, *w.pads_end)):
        return value, w
    none, behind = (0,) * len(w.kernel), (0, 0)
    pad = Pad((*behind, *w.pads_begin), (*behind, *w.pads_end), PadMode.CONSTANT, fill)
    return ctx.emit(pad, [value]), replace(w, pads_begin=none, pads_end=none)


def biased(ctx: NodeContext, result: str, channels: int, operand: int = 2) -> str:
    """*result* ``[n, channels, ..]`` plus the given operand, a bias per channel, if present."""
    if not ctx.has_input(operand):
        return result
    rank = len(ctx.type_of(result).shape)
    bias = ctx.reshape(ctx.input(operand), (channels, *(1,) * (rank - 2)))
    return ctx.apply(Fn.ADD, result, bias)


def windows_of(ctx: NodeContext, spatial: Shape, kernel: Shape) -> Windows:
    """Resolve ``auto_pad``, ``pads`` and ``ceil_mode`` of *ctx*'s node."""
    rank = len(spatial)
    strides = ctx.ints("strides", (1,) * rank)
    dilations = ctx.ints("dilations", (1,) * rank)
    if not len(kernel) == len(strides) == len(dilations) == rank:
        raise Unsupported("kernel_shape, strides, dilations", f"give {rank} numbers each")
    require_positive(kernel_shape=kernel, strides=strides, dilations=dilations)
    begin, end = _pads(ctx, spatial, kernel, strides, dilations)
    reach = tuple(d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True))
    extended = end
    if ctx.attr("ceil_mode", 0):
        extended = tuple(
            _ceil_end(*axis) for axis in zip(spatial, reach, strides, begin, end, strict=True)
        )
    return Windows(kernel, strides, dilations, begin, extended, end)


def require_positive(**given: Shape) -> None:
    """Refuse attributes, given by name, that contain a number less than 1."""
    for name, numbers in given.items():
        if min(numbers, default=1) < 1:
            raise Unsupported(f"{name}={numbers}", "none may be less than 1")


def _pads(
    ctx: NodeContext, spatial: Shape, kernel: Shape, strides: Shape, dilations: Shape
) -> tuple[Shape, Shape]:
    rank = len(spatial)
    auto = ctx.attr("auto_pad", "NOTSET")
    if auto in ("NOTSET", ""):
        pads = ctx.ints("pads", (0,) * (2 * rank))
        if len(pads) != 2 * rank or min(pads) < 0:
            raise Unsupported(f"pads={pads}", f"give {2 * rank} numbers, none negative")
        return pads[:rank], pads[rank:]
    if auto == "VALID":
        return (0,) * rank, (0,) * rank
    if auto not in ("SAME_UPPER", "SAME_LOWER"):
        raise Unsupported(f"auto_pad={auto}", "use NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    totals = [
        _larger((-(-size // s) - 1) * s + d * (k - 1) + 1 - size, 0)
        for size, k, s, d in zip(spatial, kernel, strides, dilations, strict=True)
    ]
    small, large = tuple(t // 2 for t in totals), tuple(t - t // 2 for t in totals)
    return (small, large) if auto == "SAME_UPPER" else (large, small)


def _larger(a: AnyExtent, b: AnyExtent) -> AnyExtent:
    return extreme(SizeOp.MAX, a, b)


def _ceil_end(
    size: AnyExtent, reach: int, stride: int, begin: AnyExtent, end: AnyExtent
) -> AnyExtent:
    """End padding that admits the partial last window, unless it starts beyond the data.

    It is less than *end* if the last window needs less, or would contain only end padding.
    """
    count = -(-(size + begin + end - reach) // stride) + 1
    count = extreme(SizeOp.MIN, count, _larger(-(-(size + begin) // stride), count - 1))
    return _larger((count - 1) * stride + reach - size - begin, 0)
