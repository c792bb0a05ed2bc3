"""Source positions and weights of a resized axis whose extents depend on sizes.

Where positions do not depend on the axis's extent, one constant table serves all sizes: that of the
largest.  Otherwise, the positions are computed at run time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ansorpy.frontend.onnx.context import Cut, NodeContext
from ansorpy.frontend.onnx.images.coordinates import ResizedAxis, ResizeRule
from ansorpy.frontend.onnx.ratio import ratio_of
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Fn, Reduce, ReduceKind, Reshape
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent, dims_of, least, most
from ansorpy.ir.sizes import at, fixed

__all__ = ["SizedAxis", "computed_tables", "resized_by", "resized_by_data", "resized_to"]

FLOAT64 = DType.FLOAT64
_FREE = ("asymmetric", "half_pixel", "tf_half_pixel_for_nn", "pytorch_half_pixel")
"""Coordinates that depend on the scale only; the last one if the result has several elements."""
_ROUNDED = {"floor": Fn.FLOOR, "ceil": Fn.CEIL}
_MOST_TAPS = 64
"""Elements of which each result may be the weighted sum."""
_LARGEST = 1 << 24
"""Below this, float32 has every integer."""
_MOST_PARTS = 1 << 10
"""The largest denominator of a fraction that a scale may stand for."""


@dataclass(frozen=True)
class SizedAxis:
    """An axis of ``size`` elements, resized to ``out``.

    ``scale`` is None if it varies: it is then the number in the value ``factor``, or else that of
    ``out`` over ``size``.
    """

    axis: int
    size: AnyExtent
    out: AnyExtent
    scale: float | None
    factor: str | None = None

    def largest(self, coordinates: str) -> ResizedAxis | None:
        """The axis at its largest size, if its positions are those at all sizes."""
        alone = coordinates == "pytorch_half_pixel" and least(self.out) < 2
        if self.scale is None or coordinates not in _FREE or alone:
            return None
        return ResizedAxis(self.axis, most(self.size), most(self.out), self.scale)


def resized_by(ctx: NodeContext, axis: int, size: AnyExtent, scale: float) -> SizedAxis:
    """An axis of *size* elements times *scale*, rounded to float32 and then down.

    The new size is that of the fraction that *scale* stands for, such as 7/10; refuses a scale for
    which this differs at some size.
    """
    meant = Fraction(scale).limit_denominator(_MOST_PARTS)
    low, high = least(size), most(size)
    if high < _LARGEST:
        sizes = np.arange(low, high + 1)
        rounded = np.floor(np.float32(scale) * sizes.astype(np.float32)).astype(np.int64)
        if np.array_equal(rounded, sizes * meant.numerator // meant.denominator):
            out = ratio_of(meant).times(ratio_of(size)).floor()
            return SizedAxis(axis, size, out, scale)
    raise ctx.undecided(f"scale {scale:g} of {size}", [size])


def resized_to(axis: int, size: AnyExtent, out: AnyExtent) -> SizedAxis:
    """An axis of *size* elements, resized to *out*."""
    greatest = {dim: dim.high for dim in dims_of([size, out])}
    ratio = Fraction(fixed(at(out, greatest)), max(fixed(at(size, greatest)), 1))
    fits = out * ratio.denominator == size * ratio.numerator
    scale = float(np.float32(ratio.numerator) / np.float32(ratio.denominator)) if fits else None
    return SizedAxis(axis, size, out, scale)


def resized_by_data(ctx: NodeContext, named: Sequence[int], index: int) -> list[SizedAxis]:
    """The axes *named*, whose scales are data: operand *index*, for which the user gave bounds.

    A run fails if a result is larger than they allow, or would be empty.
    """
    name, value = ctx.node.input[index], ctx.input(index)
    if ctx.shape(index) != (len(named),):
        raise Unsupported("scales", f"give {len(named)} positive numbers")
    bound = None if ctx.bounds is None else ctx.bounds.factors(name, len(named))
    if bound is None:
        raise ctx.unknown("scales", value, name)
    made = []
    for n, (axis, (low, high)) in enumerate(zip(named, bound, strict=True)):
        size = ctx.shape()[axis]
        factor = ctx.reshape(ctx.slice(ctx.cast(value, DType.FLOAT32), {0: Cut(n, 1)}), ())
        length = ctx.apply(Fn.MUL, factor, ctx.size(size, DType.FLOAT32))
        ends = max(low * least(size), 1), size * high
        below, above = (
            _counted(ctx, ctx.apply(fn, length), f"{name}.size.{n}", *ends)
            for fn in (Fn.FLOOR, Fn.CEIL)
        )
        if below == above:  # one number, hence the scale is one, too
            made.append(SizedAxis(axis, size, below, float(high)))
        else:
            made.append(SizedAxis(axis, size, below, None, factor))
    return made


def _counted(ctx: NodeContext, length: str, name: str, low: int, high: AnyExtent) -> AnyExtent:
    """The size that *length*, a float, tells."""
    told = ctx.builder.emit(Reshape(()), [ctx.cast(length, DType.INT64)], name)
    return ctx.builder.counted(told, high, low)


def computed_tables(ctx: NodeContext, axis: SizedAxis, rule: ResizeRule) -> tuple[str, str | None]:
    """Source positions, and but for mode nearest weights, computed at run time: ``[out, taps]``.

    Coordinates are computed in float32 and weights in float64, as those of known sizes are.
    """
    found = _coordinates(ctx, axis, rule.coordinates)
    if rule.mode == "nearest":
        places = _nearest(ctx, axis, found, rule.rounding)
        return ctx.cast(ctx.reshape(places, (axis.out, 1)), DType.INT32), None
    place = ctx.cast(ctx.reshape(found, (axis.out, 1)), FLOAT64)
    stretch, least_stretch = _stretch(ctx, axis) if rule.antialias else (None, 1.0)
    reach = 1 if rule.mode == "linear" else 2
    start = int(np.floor(-reach / least_stretch)) + 1
    if 2 - 2 * start > _MOST_TAPS:
        raise ctx.undecided("antialias=1", [axis.size, axis.out])
    one = ctx.literal(1.0, FLOAT64)
    offsets = ctx.literal(np.arange(start, 2.0 - start), FLOAT64)
    taps = ctx.apply(Fn.ADD, ctx.apply(Fn.SUB, ctx.apply(Fn.CEIL, place), one), offsets)
    distance = ctx.apply(Fn.ABS, ctx.apply(Fn.SUB, taps, place))
    distance = distance if stretch is None else ctx.apply(Fn.MUL, distance, stretch)
    weights = _linear(ctx, distance) if reach == 1 else _cubic(ctx, distance, rule.cubic)
    if rule.exclude_outside:
        size = ctx.size(axis.size, FLOAT64)
        zero = ctx.literal(0.0, FLOAT64)
        inside = ctx.apply(
            Fn.AND, ctx.apply(Fn.LESS_EQUAL, zero, taps), ctx.apply(Fn.LESS, taps, size)
        )
        weights = ctx.apply(Fn.WHERE, inside, weights, zero)
    if stretch is not None or rule.exclude_outside:
        weights = ctx.apply(
            Fn.DIV, weights, ctx.emit(Reduce(ReduceKind.SUM, (1,), True), [weights])
        )
    return ctx.cast(taps, DType.INT32), ctx.cast(weights, ctx.type().dtype)


def _stretch(ctx: NodeContext, axis: SizedAxis) -> tuple[str, float]:
    """The factor of distances in an axis that shrinks, and its least value."""
    if axis.scale is not None:
        known = min(axis.scale, 1.0)
        return ctx.literal(known, FLOAT64), known
    scale = ctx.cast(_scale(ctx, axis), FLOAT64)
    return ctx.apply(Fn.MIN, scale, ctx.literal(1.0, FLOAT64)), min(
        least(axis.out) / most(axis.size), 1.0
    )


def _scale(ctx: NodeContext, axis: SizedAxis) -> str:
    """The scale, float32."""
    if axis.scale is not None:
        return ctx.literal(axis.scale, DType.FLOAT32)
    if axis.factor is not None:
        return axis.factor
    out, size = (ctx.size(e, DType.FLOAT32) for e in (axis.out, axis.size))
    return ctx.apply(Fn.DIV, out, size)


def _linear(ctx: NodeContext, distance: str) -> str:
    """Weights that fall to 0 at a distance of 1."""
    one, zero = (ctx.literal(v, FLOAT64) for v in (1.0, 0.0))
    return ctx.apply(Fn.MAX, ctx.apply(Fn.SUB, one, distance), zero)


def _cubic(ctx: NodeContext, distance: str, a: float) -> str:
    """Weights of cubic convolution, which are 0 from a distance of 2 on."""

    def polynomial(*factors: float) -> str:
        value = ctx.literal(factors[0], FLOAT64)
        for factor in factors[1:]:
            value = ctx.apply(Fn.MUL, value, distance)
            value = ctx.apply(Fn.ADD, value, ctx.literal(factor, FLOAT64))
        return value

    near, far = polynomial(a + 2, -(a + 3), 0.0, 1.0), polynomial(a, -5 * a, 8 * a, -4 * a)
    one, two, zero = (ctx.literal(v, FLOAT64) for v in (1.0, 2.0, 0.0))
    far = ctx.apply(Fn.WHERE, ctx.apply(Fn.LESS, distance, two), far, zero)
    return ctx.apply(Fn.WHERE, ctx.apply(Fn.LESS_EQUAL, distance, one), near, far)


def _coordinates(ctx: NodeContext, axis: SizedAxis, mode: str) -> str:
    """:func:`~ansorpy.frontend.onnx.images.coordinates.coordinates`, as a value of the graph."""
    half = ctx.literal(0.5, DType.FLOAT32)
    x = ctx.cast(ctx.places(axis.out), DType.FLOAT32)
    size, out = (ctx.size(e, DType.FLOAT32) for e in (axis.size, axis.out))
    scale = _scale(ctx, axis)
    match mode:
        case "asymmetric":
            return ctx.apply(Fn.DIV, x, scale)
        case "tf_half_pixel_for_nn":
            return ctx.apply(Fn.DIV, ctx.apply(Fn.ADD, x, half), scale)
        case "align_corners":
            last = ctx.size(axis.size - 1, DType.FLOAT32)
            steps = ctx.apply(Fn.MAX, _length(ctx, axis), ctx.literal(1.0, DType.FLOAT32))
            return ctx.apply(Fn.DIV, ctx.apply(Fn.MUL, x, last), steps)
        case "half_pixel_symmetric":
            whole = ctx.apply(Fn.DIV, out, ctx.apply(Fn.MUL, scale, size))
            beyond = ctx.apply(Fn.SUB, ctx.literal(1.0, DType.FLOAT32), whole)
            offset = ctx.apply(Fn.MUL, ctx.apply(Fn.MUL, size, half), beyond)
            centred = ctx.apply(Fn.DIV, ctx.apply(Fn.ADD, x, half), scale)
            return ctx.apply(Fn.SUB, ctx.apply(Fn.ADD, offset, centred), half)
        case "half_pixel" | "pytorch_half_pixel":
            centred = ctx.apply(Fn.DIV, ctx.apply(Fn.ADD, x, half), scale)
            found = ctx.apply(Fn.SUB, centred, half)
            if mode == "half_pixel" or least(axis.out) > 1:
                return found
            alone = ctx.apply(Fn.EQUAL, out, ctx.literal(1.0, DType.FLOAT32))
            return ctx.apply(Fn.WHERE, alone, ctx.literal(0.0, DType.FLOAT32), found)
    raise ctx.undecided(f"coordinate_transformation_mode={mode}", [axis.size, axis.out])


def _length(ctx: NodeContext, axis: SizedAxis) -> str:
    """The new length before truncation, less one."""
    exact = None if axis.scale is None else ratio_of(axis.scale).times(ratio_of(axis.size))
    if axis.factor is None and (exact is None or exact.below == 1):
        return ctx.size(axis.out - 1, DType.FLOAT32)
    whole = ctx.apply(Fn.MUL, ctx.size(axis.size, DType.FLOAT32), _scale(ctx, axis))
    return ctx.apply(Fn.SUB, whole, ctx.literal(1.0, DType.FLOAT32))


def _nearest(ctx: NodeContext, axis: SizedAxis, place: str, rounding: str) -> str:
    half = ctx.literal(0.5, DType.FLOAT32)
    match rounding:
        case "round_prefer_floor":
            return ctx.apply(Fn.CEIL, ctx.apply(Fn.SUB, place, half))
        case "round_prefer_ceil":
            return ctx.apply(Fn.FLOOR, ctx.apply(Fn.ADD, place, half))
        case "by direction" if axis.scale is not None:
            return ctx.apply(Fn.CEIL if axis.scale < 1 else Fn.FLOOR, place)
        case "floor" | "ceil":
            return ctx.apply(_ROUNDED[rounding], place)
    raise ctx.undecided(f"nearest_mode={rounding}", [axis.size, axis.out])
