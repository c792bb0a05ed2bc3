"""Transposed convolution."""

from __future__ import annotations

from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.frontend.onnx.operators.windows import biased, kernel_of, require_positive
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import ConvTranspose, Shape
from ansorpy.ir.extents import extreme, least
from ansorpy.ir.symbols import SizeOp

__all__ = ["OPERATORS"]


def conv_transpose(ctx: NodeContext) -> str:
    """Supports groups, strides, dilations, all paddings, ``output_shape``, ``output_padding``."""
    kernel, groups = kernel_of(ctx, "input channels")
    rank = len(kernel)
    strides = ctx.ints("strides", (1,) * rank)
    dilations = ctx.ints("dilations", (1,) * rank)
    begin, out = _extent(ctx, kernel, strides, dilations)
    op = ConvTranspose(strides, begin, out, dilations, groups)
    result = ctx.emit(op, [ctx.input(0), ctx.input(1)])
    return biased(ctx, result, ctx.shape(1)[1] * groups)


def _extent(
    ctx: NodeContext, kernel: Shape, strides: Shape, dilations: Shape
) -> tuple[Shape, Shape]:
    """(elements cropped in front, output size) of each spatial axis, by the rules of ONNX."""
    rank = len(kernel)
    more = ctx.ints("output_padding", (0,) * rank)
    if not len(strides) == len(dilations) == len(more) == rank:
        raise Unsupported("strides, dilations, output_padding", f"give {rank} numbers each")
    require_positive(strides=strides, dilations=dilations)
    size = ctx.shape()[2:]
    whole = tuple(
        (n - 1) * s + d * (k - 1) + 1 + extra
        for n, k, s, d, extra in zip(size, kernel, strides, dilations, more, strict=True)
    )
    auto = ctx.attr("auto_pad", "NOTSET")
    if auto not in ("NOTSET", "", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise Unsupported(f"auto_pad={auto}", "use NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    # Pads are never negative: if the taps cover less than SAME requires, the output is smaller.
    same = tuple(
        extreme(SizeOp.MIN, w, n * s) for w, n, s in zip(whole, size, strides, strict=True)
    )
    given = ctx.ints("output_shape", ())[-rank:]
    out = given or (same if auto.startswith("SAME") else ())
    if out:
        if len(out) != rank:
            raise Unsupported(f"output_shape={out}", f"give {rank} numbers")
        require_positive(output_shape=tuple(map(least, out)))
        cut = [
            ctx.number(extreme(SizeOp.MAX, w - o, 0), "pads")
            for w, o in zip(whole, out, strict=True)
        ]
        begin = tuple(c // 2 if auto == "SAME_UPPER" else c - c // 2 for c in cut)
        return begin, out
    pads = (0,) * (2 * rank) if auto == "VALID" else ctx.ints("pads", (0,) * (2 * rank))
    if len(pads) != 2 * rank or min(pads) < 0:
        raise Unsupported(f"pads={pads}", f"give {2 * rank} numbers, none negative")
    begin, end = pads[:rank], pads[rank:]
    out = tuple(w - b - e for w, b, e in zip(whole, begin, end, strict=True))
    if any(least(extent) < 1 for extent in out):
        raise Unsupported(f"pads={pads}", "they crop the whole image")
    return begin, out


OPERATORS = {"ConvTranspose": conv_transpose}
