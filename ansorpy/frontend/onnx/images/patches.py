"""Overlapping patches: images put together from them, and convolutions of moved samples."""

from __future__ import annotations

from ansorpy.frontend.onnx.context import NodeContext, Translate
from ansorpy.frontend.onnx.equations import rooms_of
from ansorpy.frontend.onnx.operators.windows import (
    biased,
    kernel_of,
    require_known_pads,
    require_positive,
    windows_of,
)
from ansorpy.frontend.onnx.unsupported import TooShort, Unsupported
from ansorpy.graph.ops import Columns, DeformedPatches, MatMul, Shape
from ansorpy.graph.ops.indexing import count_windows
from ansorpy.ir.extents import least, prod_of

__all__ = ["OPERATORS"]


def col2im(ctx: NodeContext) -> str:
    """The sum of patches ``[n, c * block, count]`` at their places in an image."""
    ctx.require_rank(0, 3)
    size = ctx.extents(1, "image_shape")
    block = tuple(ctx.number(e, "block_shape") for e in ctx.extents(2, "block_shape"))
    rank = len(size)
    strides, dilations = ctx.ints("strides", (1,) * rank), ctx.ints("dilations", (1,) * rank)
    pads = ctx.ints("pads", (0,) * (2 * rank))
    if {len(block), len(strides), len(dilations), len(pads) / 2} != {rank}:
        raise Unsupported("block_shape, strides, dilations, pads", f"give numbers for {rank} axes")
    require_positive(block_shape=block, strides=strides, dilations=dilations)
    begin, end = pads[:rank], pads[rank:]
    batch, both, count = ctx.shape()
    counts = _windows(size, block, strides, begin, end, dilations)
    inner = prod_of(block)
    if both % inner != 0 or prod_of(counts) != count:
        raise Unsupported(
            f"input shape {ctx.shape()}",
            f"blocks of {block} in an image of {size} have {inner} elements for each channel and "
            f"{prod_of(counts)} places",
        )
    patches = ctx.reshape(ctx.input(), (batch, both // inner, *block, *counts))
    return ctx.cast(ctx.emit(Columns(size, strides, begin, dilations), [patches]), ctx.type().dtype)


def deform_conv(ctx: NodeContext) -> str:
    """A convolution whose samples are moved by offsets, and perhaps multiplied by a mask."""
    ctx.require_float()
    kernel, groups = kernel_of(ctx, "output channels")
    w = windows_of(ctx, ctx.shape()[2:], kernel)
    batch, channels, *spatial = ctx.shape()
    require_known_pads(ctx, w)
    windows = _windows(tuple(spatial), kernel, w.strides, w.pads_begin, w.pads_end, w.dilations)
    shifted = ctx.attr("offset_group", 1)
    if shifted < 1 or channels % shifted:
        raise Unsupported(f"offset_group={shifted}", f"it must divide the {channels} channels")
    rank, taps = len(kernel), prod_of(kernel)
    operands = [ctx.input(0), _grouped(ctx, 2, (batch, shifted, *kernel, rank, *windows))]
    if ctx.has_input(4):
        operands.append(_grouped(ctx, 4, (batch, shifted, *kernel, *windows)))
    patches = ctx.emit(DeformedPatches(w.strides, w.pads_begin, w.dilations), operands)
    out, own = ctx.shape(1)[:2]
    if own * groups != channels:
        raise Unsupported(f"weight shape {ctx.shape(1)}", f"the data has {channels} channels")
    columns = ctx.reshape(patches, (batch, groups, own * taps, prod_of(windows)))
    weight = ctx.reshape(ctx.input(1), (1, groups, out // groups, own * taps))
    if groups == 1:
        columns = ctx.reshape(columns, (batch, own * taps, prod_of(windows)))
        weight = ctx.reshape(weight, (out, own * taps))
    product = ctx.emit(MatMul(), [weight, columns])
    return biased(ctx, ctx.reshape(product, (batch, out, *windows)), out, 3)


def _windows(
    spatial: Shape, kernel: Shape, strides: Shape, begin: Shape, end: Shape, dilations: Shape
) -> Shape:
    """How many windows there are along each axis; refuses images into which none fits."""
    try:
        return count_windows(spatial, kernel, strides, begin, end, dilations)
    except ValueError as error:
        rooms = rooms_of(spatial, kernel, dilations, begin, end)
        missing = next(room for room in rooms if least(room) < 0)
        raise TooShort("operand shapes", str(error), missing) from None


def _grouped(ctx: NodeContext, index: int, shape: Shape) -> str:
    """Operand *index* with its second axis split as in *shape*."""
    if ctx.type(index).size != prod_of(shape):
        wanted = "offsets" if index == 2 else "mask"
        raise Unsupported(f"{wanted} of shape {ctx.shape(index)}", f"give {shape}, in fewer axes")
    return ctx.reshape(ctx.input(index), shape)


OPERATORS: dict[str, Translate] = {"Col2Im": col2im, "DeformConv": deform_conv}
