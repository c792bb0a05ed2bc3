"""Operators that only reshape tensors or move elements."""

from __future__ import annotations

from ansorpy.frontend.onnx.context import Cut, NodeContext, Translate
from ansorpy.frontend.onnx.equations import unequal
from ansorpy.frontend.onnx.unsupported import TooShort, Unequal, Unknown, Unsupported
from ansorpy.graph.ops import Expand, Fn, Gather, Pad, PadMode, Shape, broadcast
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent, extreme, least, most, prod_of
from ansorpy.ir.symbols import SizeOp

__all__ = ["OPERATORS", "resized"]


def identity(ctx: NodeContext) -> str:
    """The operand itself."""
    return ctx.input()


def reshape(ctx: NodeContext) -> str:
    """Reshape to a shape that follows from sizes, in which 0 copies one and -1 is inferred."""
    have = ctx.shape()
    wanted = list(ctx.extents(1, "shape"))
    if not ctx.attr("allowzero", 0):
        if 0 in wanted[len(have) :]:
            raise Unsupported(f"shape={wanted}", f"a 0 copies one of {len(have)} dimensions")
        wanted = [have[d] if e == 0 else e for d, e in enumerate(wanted)]
    if -1 in wanted:
        wanted[wanted.index(-1)] = _missing(have, [e for e in wanted if e != -1])
    return ctx.reshape(ctx.input(), tuple(wanted))


def _missing(have: Shape, known: Shape | list[AnyExtent]) -> AnyExtent:
    """The extent that with *known* ones gives as many elements as *have*.

    Extents in both are left out first: any of them may be 0, which numbers alone cannot divide.
    """
    known, rest = list(known), []
    for extent in have:
        if not isinstance(extent, int) and extent in known:
            known.remove(extent)
        else:
            rest.append(extent)
    return prod_of(rest) // extreme(SizeOp.MAX, prod_of(known), 1)


def flatten(ctx: NodeContext) -> str:
    """A matrix whose rows merge the axes before ``axis``, and whose columns merge the rest."""
    shape = ctx.shape()
    axis = ctx.attr("axis", 1)
    axis = len(shape) if axis == len(shape) else ctx.axis(axis, len(shape))
    return ctx.reshape(ctx.input(), (prod_of(shape[:axis]), prod_of(shape[axis:])))


def _given_axes(ctx: NodeContext) -> Shape:
    return ctx.constant_ints(1, "axes") if ctx.has_input(1) else ctx.ints("axes", ())


def squeeze(ctx: NodeContext) -> str:
    """Drop the given axes of extent one, or all of them."""
    shape = ctx.shape()
    axes = ctx.axes(_given_axes(ctx), len(shape)) or {
        d for d, e in enumerate(shape) if not ctx.is_less(1, e) and e == 1
    }
    return ctx.reshape(ctx.input(), tuple(e for d, e in enumerate(shape) if d not in axes))


def unsqueeze(ctx: NodeContext) -> str:
    """Insert axes of extent one at the given positions of the result."""
    given = _given_axes(ctx)
    rank = len(ctx.shape()) + len(given)
    places = ctx.axes(given, rank)
    rest = iter(ctx.shape())
    return ctx.reshape(ctx.input(), tuple(1 if d in places else next(rest) for d in range(rank)))


def transpose(ctx: NodeContext) -> str:
    """Permute the axes; the default reverses them."""
    perm = ctx.ints("perm", tuple(reversed(range(len(ctx.shape())))))
    if sorted(perm) != list(range(len(ctx.shape()))):
        raise Unsupported(f"perm={perm}", f"name each of {len(ctx.shape())} axes once")
    return ctx.transpose(ctx.input(), perm)


def concat(ctx: NodeContext) -> str:
    """Join along ``axis``."""
    return ctx.concat(ctx.inputs, ctx.axis(ctx.attr("axis", 1), len(ctx.shape())))


def slice_(ctx: NodeContext) -> str:
    """Slice as numpy does, with bounds that follow from sizes or data; steps may be negative."""
    shape = ctx.shape()
    if ctx.opset < 10:
        starts, ends = ctx.ints("starts", ()), ctx.ints("ends", ())
        axes, steps = ctx.ints("axes", range(len(starts))), (1,) * len(starts)
    else:
        (count,) = ctx.shape(1)
        axes = ctx.constant_ints(3, "axes") if ctx.has_input(3) else tuple(range(count))
        steps = ctx.constant_ints(4, "steps") if ctx.has_input(4) else (1,) * count
        try:
            starts, ends = ctx.extents(1, "starts"), ctx.extents(2, "ends")
        except Unknown:
            if steps != (1,):
                raise
            return _cut_by_data(ctx, ctx.axis(axes[0], len(shape)))
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise Unsupported("starts, ends, axes, steps", "give the same number of each, no step of 0")
    ctx.axes(axes, len(shape))
    cuts: dict[int, Cut] = {}
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        d = ctx.axis(axis, len(shape))
        first, last = (_from_front(ctx, place, shape[d]) for place in (start, end))
        cuts[d] = _cut(shape[d], first, last, step)
    return ctx.slice(ctx.input(), cuts)


def _cut_by_data(ctx: NodeContext, axis: int) -> str:
    """The elements of *axis* from one place to another of which a run knows at least one.

    There are at most as many as the axis has.
    """
    extent = ctx.shape()[axis]
    total, zero = ctx.size(extent, DType.INT64), ctx.literal(0, DType.INT64)

    def place(operand: int) -> str:
        given = ctx.reshape(ctx.cast(ctx.input(operand), DType.INT64), ())
        behind = ctx.apply(Fn.LESS, given, zero)
        front = ctx.apply(Fn.WHERE, behind, ctx.apply(Fn.ADD, given, total), given)
        return ctx.apply(Fn.MIN, ctx.apply(Fn.MAX, front, zero), total)

    first, last = place(1), place(2)
    size = ctx.apply(Fn.MAX, ctx.apply(Fn.SUB, last, first), zero)
    known = ctx.builder.constants.get(first)
    if known is not None:
        begin = int(known)
        cut = Cut(begin, ctx.builder.counted(size, extent - begin))
        return ctx.slice(ctx.input(), {axis: cut})
    count = ctx.builder.counted(size, extent)
    return ctx.emit(Gather(axis), [ctx.input(), ctx.apply(Fn.ADD, ctx.places(count), first)])


def _from_front(ctx: NodeContext, place: AnyExtent, extent: AnyExtent) -> AnyExtent:
    """*place*, which counts from the end of an axis of *extent* elements if it is negative."""
    return place + extent if ctx.is_less(place, 0) else place


def _cut(extent: AnyExtent, first: AnyExtent, last: AnyExtent, step: int) -> Cut:
    """The elements from *first* up to *last*; bounds beyond the data are clamped.

    This differs from Python if a negative step starts before the data; ONNX then starts at the
    first element.
    """
    if step > 0:
        start, end = _within(first, 0, extent), _within(last, 0, extent)
        size = (end - start + (step - 1)) // step
    else:
        start, end = _within(first, 0, extent - 1), _within(last, -1, extent - 1)
        size = (start - end + (-step - 1)) // -step
    return Cut(start, extreme(SizeOp.MAX, size, 0), step)


def _within(place: AnyExtent, low: AnyExtent, high: AnyExtent) -> AnyExtent:
    return extreme(SizeOp.MIN, extreme(SizeOp.MAX, place, low), high)


def split(ctx: NodeContext) -> tuple[str, ...]:
    """One slice per output."""
    shape = ctx.shape()
    axis = ctx.axis(ctx.attr("axis", 0), len(shape))
    count = len(ctx.node.output)
    sizes = ctx.ints("split", ()) or (ctx.extents(1, "split") if ctx.has_input(1) else ())
    may_differ = not sizes and ctx.opset >= 18  # the last one is smaller
    if not sizes:
        part = -(-shape[axis] // count)
        sizes = tuple(_within(shape[axis] - i * part, 0, part) for i in range(count))
    if len(sizes) != count or not (may_differ or sum(sizes) == shape[axis]):
        raise Unsupported(f"split={sizes}", f"give {count} sizes that sum up to {shape[axis]}")
    parts: list[str] = []
    start: AnyExtent = 0
    for size in sizes:
        parts.append(ctx.slice(ctx.input(), {axis: Cut(start, size)}))
        start = start + size
    return tuple(parts)


def expand(ctx: NodeContext) -> str:
    """Broadcast to a shape that follows from sizes."""
    wanted = ctx.extents(1, "shape")
    try:
        shape = broadcast([ctx.shape(), wanted])
    except ValueError as error:
        found = unequal(Expand(wanted), [ctx.shape()])
        raise (
            Unsupported(f"shape={wanted}", str(error)) if found is None else Unequal(found)
        ) from None
    return ctx.input() if shape == ctx.shape() else ctx.emit(Expand(shape), [ctx.input()])


def tile(ctx: NodeContext) -> str:
    """Repeat the whole tensor along each axis, as often as follows from sizes."""
    shape, repeats = ctx.shape(), ctx.extents(1, "repeats")
    if len(repeats) != len(shape) or any(least(times) < 0 for times in repeats):
        raise Unsupported(f"repeats={repeats}", f"give {len(shape)} numbers, none negative")
    if all(times == 1 for times in repeats):
        return ctx.input()
    split, wider = [], []
    for extent, times in zip(shape, repeats, strict=True):
        split += [extent] if times == 1 else [1, extent]
        wider += [extent] if times == 1 else [times, extent]
    spread = ctx.emit(Expand(tuple(wider)), [ctx.reshape(ctx.input(), tuple(split))])
    return ctx.reshape(spread, tuple(e * r for e, r in zip(shape, repeats, strict=True)))


def depth_to_space(ctx: NodeContext) -> str:
    """Turn channels into blocks of pixels; the block is the outer (DCR) or inner (CRD) part."""
    n, c, h, w = ctx.shape()
    block, mode = ctx.attr("blocksize", 1), ctx.attr("mode", "DCR")
    if mode not in ("DCR", "CRD") or block < 1 or c % block**2 != 0:
        raise Unsupported(f"blocksize={block}, mode={mode}", f"the image has {c} channels")
    depth = c // block**2
    split = (n, block, block, depth, h, w) if mode == "DCR" else (n, depth, block, block, h, w)
    perm = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    turned = ctx.transpose(ctx.reshape(ctx.input(), split), perm)
    return ctx.reshape(turned, (n, depth, h * block, w * block))


def space_to_depth(ctx: NodeContext) -> str:
    """Turn blocks of pixels into channels; the block is the outer (DCR) or inner (CRD) part."""
    n, c, h, w = ctx.shape()
    block, mode = ctx.attr("blocksize", 1), ctx.attr("mode", "DCR")
    if mode not in ("DCR", "CRD") or block < 1 or h % block != 0 or w % block != 0:
        raise Unsupported(f"blocksize={block}, mode={mode}", f"the image is {h} x {w}")
    split = ctx.reshape(ctx.input(), (n, c, h // block, block, w // block, block))
    turned = ctx.transpose(split, (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4))
    return ctx.reshape(turned, (n, c * block**2, h // block, w // block))


def pad(ctx: NodeContext) -> str:
    """Pad by amounts that follow from sizes; the mode is constant, edge, reflect or wrap."""
    rank = len(ctx.shape())
    mode = ctx.attr("mode", "constant")
    if mode not in {m.value for m in PadMode}:
        raise Unsupported(f"mode={mode}", "use constant, edge, reflect or wrap")
    amounts = ctx.ints("pads", ()) if ctx.opset < 11 else ctx.extents(1, "pads")
    axes = tuple(range(rank))
    if ctx.has_input(3):
        axes = tuple(ctx.axis(a, rank) for a in ctx.constant_ints(3, "axes"))
    begin, end = _spread(amounts, axes, rank)
    if all(amount == 0 for amount in (*begin, *end)):
        return ctx.input()
    if mode == PadMode.REFLECT.value:
        _refuse_far_reflection(ctx.shape(), begin, end)
    if mode == PadMode.WRAP.value:
        _refuse_cropped_repetition(begin, end)
    if mode == PadMode.EDGE.value:
        _refuse_without_edge(ctx.shape(), begin, end)
    value = _padding(ctx)
    padded = ctx.emit(Pad(begin, end, PadMode(mode), 0 if value is None else value), [ctx.input()])
    return padded if value is not None or mode != "constant" else _filled(ctx, padded, begin)


def _padding(ctx: NodeContext) -> float | None:
    """The value around a padded operand; None if only a run knows it."""
    value: float = ctx.attr("value", 0.0)
    if ctx.opset >= 11 and ctx.has_input(2):
        array = ctx.builder.constants.get(ctx.input(2))
        if array is None:
            return None
        value = array.item()
    return int(value) if ctx.type().dtype.is_int else float(value)  # floats lack large integers


def _filled(ctx: NodeContext, padded: str, begin: Shape) -> str:
    """*padded* with the value that a run knows around the operand, which starts at *begin*."""
    shape, value = ctx.type_of(padded).shape, ctx.reshape(ctx.input(2), ())
    for d, (first, extent) in enumerate(zip(begin, ctx.shape(), strict=True)):
        if first == 0 and shape[d] == extent:
            continue
        place = ctx.places(shape[d], len(shape) - d - 1)
        low, high = (ctx.size(e, DType.INT64) for e in (first, first + extent))
        outside = ctx.apply(
            Fn.OR, ctx.apply(Fn.LESS, place, low), ctx.apply(Fn.LESS_EQUAL, high, place)
        )
        padded = ctx.apply(Fn.WHERE, outside, value, padded)
    return padded


def center_crop_pad(ctx: NodeContext) -> str:
    """The centre of some axes, or zeros around them, so that they get the wanted sizes."""
    shape = ctx.shape()
    wanted = ctx.extents(1, "shape")
    axes = tuple(ctx.axis(a, len(shape)) for a in ctx.ints("axes", tuple(range(len(shape)))))
    if len(wanted) != len(axes):
        raise Unsupported(f"shape of {len(wanted)} sizes", f"state the sizes of {len(axes)} axes")
    begin, end = [0] * len(shape), [0] * len(shape)
    cuts: dict[int, Cut] = {}
    for axis, size in zip(axes, wanted, strict=True):
        have, size = (ctx.number(e, "a centre") for e in (shape[axis], size))
        if size < have:
            cuts[axis] = Cut((have - size) // 2, size)
        else:
            begin[axis] = (size - have) // 2
            end[axis] = size - have - begin[axis]
    value = ctx.slice(ctx.input(), cuts)
    if not any((*begin, *end)):
        return value
    return ctx.emit(Pad(tuple(begin), tuple(end), PadMode.CONSTANT, 0.0), [value])


def resized(ctx: NodeContext, value: str, shape: Shape) -> str:
    """*value* of *shape*: along each axis cut, or with zeros behind it."""
    have = ctx.type_of(value).shape
    kept = tuple(extreme(SizeOp.MIN, h, w) for h, w in zip(have, shape, strict=True))
    value = ctx.slice(value, {d: Cut(0, extent) for d, extent in enumerate(kept)})
    if kept == shape:
        return value
    behind = tuple(w - k for w, k in zip(shape, kept, strict=True))
    return ctx.emit(Pad((0,) * len(shape), behind, PadMode.CONSTANT, 0.0), [value])


def _refuse_cropped_repetition(begin: Shape, end: Shape) -> None:
    """Refuse to crop one end of an axis and to repeat what is left beyond the other."""
    for amounts in zip(begin, end, strict=True):
        if min(map(least, amounts)) < 0 < max(map(most, amounts)):
            raise Unsupported(f"pads of {amounts} wrap", "crop with a Slice before the Pad")


def _refuse_far_reflection(shape: Shape, begin: Shape, end: Shape) -> None:
    """Refuse to reflect more elements than there are inside the border."""
    for extent, *amounts in zip(shape, begin, end, strict=True):
        kept = extent + sum(_within(amount, amount, 0) for amount in amounts)
        for amount in amounts:
            if most(amount - kept) >= 0 and most(amount) > 0:
                raise TooShort(
                    f"pads of {amount} reflect",
                    f"reflect at most {extreme(SizeOp.MAX, kept - 1, 0)} elements",
                    kept - 1 - amount,
                )


def _refuse_without_edge(shape: Shape, begin: Shape, end: Shape) -> None:
    """Refuse edge padding if negative pads, which crop first, leave no elements to repeat."""
    for extent, *amounts in zip(shape, begin, end, strict=True):
        kept = extent + sum(_within(amount, amount, 0) for amount in amounts)
        if least(kept) < 1:
            raise TooShort(
                f"pads of {amounts} edge",
                f"crop at most {extent - 1} of {extent} elements",
                kept - 1,
            )


def _spread(amounts: Shape, axes: Shape, rank: int) -> tuple[Shape, Shape]:
    """Begin and end amounts for every axis: those given for *axes*, 0 for the others."""
    begin: list[AnyExtent] = [0] * rank
    end: list[AnyExtent] = [0] * rank
    for place, axis in enumerate(axes):
        begin[axis], end[axis] = amounts[place], amounts[place + len(axes)]
    return tuple(begin), tuple(end)


OPERATORS: dict[str, Translate] = {
    "CenterCropPad": center_crop_pad,
    "Concat": concat,
    "DepthToSpace": depth_to_space,
    "Expand": expand,
    "Flatten": flatten,
    "Identity": identity,
    "Pad": pad,
    "Reshape": reshape,
    "Slice": slice_,
    "SpaceToDepth": space_to_depth,
    "Split": split,
    "Squeeze": squeeze,
    "Tile": tile,
    "Transpose": transpose,
    "Unsqueeze": unsqueeze,
}
