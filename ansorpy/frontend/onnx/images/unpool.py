"""The partial inverse of a pool of maxima: values put back to where they were found."""

from __future__ import annotations

from ansorpy.frontend.onnx.context import NodeContext, Translate
from ansorpy.frontend.onnx.operators.movement import resized
from ansorpy.frontend.onnx.operators.scatter import scattered
from ansorpy.frontend.onnx.operators.windows import require_positive
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ir import Output
from ansorpy.graph.ops import Expand, PoolPlaces, Shape, Unpool
from ansorpy.ir.extents import least, prod_of

__all__ = ["OPERATORS"]

_MOST_WINDOWS = 16
"""So many windows that an element lies in are compared in one expression."""


def max_unpool(ctx: NodeContext) -> str:
    """Values at their places in images of zeros.

    Places that a MaxPool of the model found are those in its image if ``output_shape`` is that of
    the image.  Otherwise they count in the image that follows from the windows, as in onnx's
    reference; it is cut, or zeros are added behind it, to ``output_shape``.
    """
    shape = ctx.shape()
    plane = _plane(ctx)
    size = ctx.extents(2, "output_shape")[2:] if ctx.has_input(2) else plane
    if len(size) != len(plane):
        raise Unsupported("output_shape", f"give {len(shape)} numbers")
    op, origin = _made(ctx)
    if op is not None and origin == size:
        plane = size
    if op is not None and origin == plane and _is_near(ctx, op):
        value = ctx.emit(Unpool(op.pool, plane), [ctx.input(0), ctx.input(1)])
    else:
        value = _written(ctx, plane)
    return resized(ctx, value, (*shape[:2], *size))


def _plane(ctx: NodeContext) -> Shape:
    """The spatial extents of the image that windows at these steps cover."""
    spatial = ctx.shape()[2:]
    rank = len(spatial)
    kernel, strides = ctx.ints("kernel_shape", ()), ctx.ints("strides", (1,) * rank)
    pads = ctx.ints("pads", (0,) * (2 * rank))
    if (len(kernel), len(strides), len(pads)) != (rank, rank, 2 * rank):
        raise Unsupported("kernel_shape, strides, pads", f"give numbers for {rank} axes")
    require_positive(kernel_shape=kernel, strides=strides)
    found = tuple(
        (n - 1) * s + k - begin - end
        for n, s, k, begin, end in zip(spatial, strides, kernel, pads, pads[rank:], strict=False)
    )
    if any(least(extent) < 1 for extent in found):
        raise Unsupported(f"pads={pads}", "they crop the whole image")
    return found


def _made(ctx: NodeContext) -> tuple[PoolPlaces | None, Shape]:
    """The operator that found the places, if it is in the graph, and the extents of its image."""
    places = ctx.input(1)
    graph = ctx.builder.finish([Output(places, places)])
    node = graph.producers().get(places)
    if node is None or not isinstance(node.op, PoolPlaces):
        return None, ()
    return node.op, graph.types[node.inputs[0]].shape[2:]


def _is_near(ctx: NodeContext, op: PoolPlaces) -> bool:
    """Whether an element lies in few windows, so that only their places are compared."""
    plain = all(dilation == 1 for dilation in op.pool.dilations)
    return plain and Unpool(op.pool, ()).candidates <= _MOST_WINDOWS


def _written(ctx: NodeContext, plane: Shape) -> str:
    """Images of extents *plane*, with the values written one after another."""
    shape = ctx.shape()
    whole = (*shape[:2], *plane)
    zeros = ctx.emit(Expand((prod_of(whole),)), [ctx.literal(0)])
    places, values = (ctx.reshape(ctx.input(n), (prod_of(shape),)) for n in (1, 0))
    return ctx.reshape(scattered(ctx, zeros, places, values, 0), whole)


OPERATORS: dict[str, Translate] = {"MaxUnpool": max_unpool}
