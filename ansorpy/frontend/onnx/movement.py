"""Operators that only rename or move elements."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext, Unsupported
from ansorpy.graph.op import Concat, Pad, PadMode, Shape, Slice

__all__ = ["OPERATORS"]

Importer = Callable[[NodeContext], "str | tuple[str, ...]"]


def reshape(ctx: NodeContext) -> str:
    """The target shape must follow from constants and static shapes; 0 copies, -1 is inferred."""
    have = ctx.shape()
    wanted = list(ctx.constant_ints(1, "shape"))
    if not ctx.attr("allowzero", 0):
        wanted = [have[d] if e == 0 else e for d, e in enumerate(wanted)]
    if -1 in wanted:
        known = math.prod(e for e in wanted if e != -1)
        wanted[wanted.index(-1)] = math.prod(have) // max(known, 1)
    return ctx.reshape(ctx.input(), tuple(wanted))


def flatten(ctx: NodeContext) -> str:
    """A matrix: the axes before ``axis``, and the rest."""
    shape = ctx.shape()
    axis = ctx.attr("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return ctx.reshape(ctx.input(), (math.prod(shape[:axis]), math.prod(shape[axis:])))


def _axes(ctx: NodeContext, rank: int) -> set[int]:
    axes = ctx.constant_ints(1, "axes") if ctx.has_input(1) else ctx.ints("axes", ())
    return {ctx.axis(a, rank) for a in axes}


def squeeze(ctx: NodeContext) -> str:
    """Drop the given axes of extent one, or all of them."""
    shape = ctx.shape()
    axes = _axes(ctx, len(shape)) or {d for d, e in enumerate(shape) if e == 1}
    return ctx.reshape(ctx.input(), tuple(e for d, e in enumerate(shape) if d not in axes))


def unsqueeze(ctx: NodeContext) -> str:
    """Insert axes of extent one at the given places of the result."""
    given = ctx.constant_ints(1, "axes") if ctx.has_input(1) else ctx.ints("axes", ())
    rank = len(ctx.shape()) + len(given)
    places = {ctx.axis(a, rank) for a in given}
    rest = iter(ctx.shape())
    return ctx.reshape(ctx.input(), tuple(1 if d in places else next(rest) for d in range(rank)))


def transpose(ctx: NodeContext) -> str:
    """Permute the axes; the default reverses them."""
    perm = ctx.ints("perm", tuple(reversed(range(len(ctx.shape())))))
    return ctx.transpose(ctx.input(), perm)


def concat(ctx: NodeContext) -> str:
    """Join along ``axis``."""
    axis = ctx.axis(ctx.attr("axis", 1), len(ctx.shape()))
    return ctx.emit(Concat(axis), ctx.inputs) if len(ctx.inputs) > 1 else ctx.input()


def slice_(ctx: NodeContext) -> str:
    """numpy's slicing with constant bounds; steps may be negative."""
    shape = ctx.shape()
    if ctx.opset < 10:
        starts, ends = ctx.ints("starts", ()), ctx.ints("ends", ())
        axes, steps = ctx.ints("axes", range(len(starts))), (1,) * len(starts)
    else:
        starts, ends = ctx.constant_ints(1, "starts"), ctx.constant_ints(2, "ends")
        axes = ctx.constant_ints(3, "axes") if ctx.has_input(3) else tuple(range(len(starts)))
        steps = ctx.constant_ints(4, "steps") if ctx.has_input(4) else (1,) * len(starts)
    ranges = [range(e) for e in shape]
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        d = ctx.axis(axis, len(shape))
        ranges[d] = _range(shape[d], start, end, step)
    return _sliced(ctx, ranges)


def _range(extent: int, start: int, end: int, step: int) -> range:
    """The indices that ``slice(start, end, step)`` selects; huge bounds clamp as in numpy."""
    stop = None if step < 0 and end < -extent else end
    return range(*slice(start, stop, step).indices(extent))


def _sliced(ctx: NodeContext, ranges: list[range]) -> str:
    if any(len(r) == 0 for r in ranges):
        raise Unsupported("slice", "it selects nothing; remove the empty branch from the model")
    if tuple(len(r) for r in ranges) == ctx.shape() and all(r.step == 1 for r in ranges):
        return ctx.input()
    op = Slice(
        tuple(r.start for r in ranges),
        tuple(len(r) for r in ranges),
        tuple(r.step for r in ranges),
    )
    return ctx.emit(op, [ctx.input()])


def split(ctx: NodeContext) -> tuple[str, ...]:
    """One slice an output."""
    shape = ctx.shape()
    axis = ctx.axis(ctx.attr("axis", 0), len(shape))
    count = len(ctx.node.output)
    sizes = ctx.ints("split", ()) or (ctx.constant_ints(1, "split") if ctx.has_input(1) else ())
    if not sizes:
        part = -(-shape[axis] // count)
        sizes = tuple(min(part, shape[axis] - i * part) for i in range(count))
    parts: list[str] = []
    start = 0
    for size in sizes:
        ranges = [range(e) for e in shape]
        ranges[axis] = range(start, start + size)
        parts.append(_sliced(ctx, ranges))
        start += size
    return tuple(parts)


def gather(ctx: NodeContext) -> str:
    """Constant, evenly spaced indices: a slice."""
    shape = ctx.shape()
    axis = ctx.axis(ctx.attr("axis", 0), len(shape))
    indices = np.asarray(ctx.constant(1, "indices"))
    flat = [int(v) % shape[axis] for v in indices.reshape(-1)]
    step = flat[1] - flat[0] if len(flat) > 1 else 1
    if step == 0 or any(b - a != step for a, b in zip(flat, flat[1:], strict=False)):
        raise Unsupported("indices", "constant indices must be evenly spaced")
    ranges = [range(e) for e in shape]
    ranges[axis] = range(flat[0], flat[-1] + (1 if step > 0 else -1), step)
    return ctx.reshape(_sliced(ctx, ranges), (*shape[:axis], *indices.shape, *shape[axis + 1 :]))


def pad(ctx: NodeContext) -> str:
    """Constant, edge or reflecting padding by constant amounts."""
    rank = len(ctx.shape())
    mode = ctx.attr("mode", "constant")
    if mode not in {m.value for m in PadMode}:
        raise Unsupported(f"mode={mode}", "use constant, edge or reflect")
    value = float(ctx.attr("value", 0.0))
    if ctx.opset < 11:
        amounts = ctx.ints("pads", ())
    else:
        amounts = ctx.constant_ints(1, "pads")
        value = float(ctx.constant(2, "constant_value").item()) if ctx.has_input(2) else value
    axes = tuple(range(rank))
    if ctx.has_input(3):
        axes = tuple(ctx.axis(a, rank) for a in ctx.constant_ints(3, "axes"))
    begin, end = _spread(amounts, axes, rank)
    if not any(begin) and not any(end):
        return ctx.input()
    return ctx.emit(Pad(begin, end, PadMode(mode), value), [ctx.input()])


def _spread(amounts: Shape, axes: Shape, rank: int) -> tuple[Shape, Shape]:
    """Begin and end amounts of every axis from those of *axes*."""
    begin, end = [0] * rank, [0] * rank
    for place, axis in enumerate(axes):
        begin[axis], end[axis] = amounts[place], amounts[place + len(axes)]
    return tuple(begin), tuple(end)


OPERATORS: dict[str, Importer] = {
    "Concat": concat,
    "Flatten": flatten,
    "Gather": gather,
    "Pad": pad,
    "Reshape": reshape,
    "Slice": slice_,
    "Split": split,
    "Squeeze": squeeze,
    "Transpose": transpose,
    "Unsqueeze": unsqueeze,
}
