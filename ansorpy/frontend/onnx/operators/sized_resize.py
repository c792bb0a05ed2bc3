"""Source positions and weights of a resized axis whose extents depend on sizes.

Where positions do not depend on the axis's extent, one constant table serves all sizes: that of the
largest.  Otherwise, the positions are computed at run time.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext, Unsupported, one_size
from ansorpy.frontend.onnx.operators.coordinates import Axis
from ansorpy.frontend.onnx.ratio import ratio_of
from ansorpy.graph.ops import Concat, Fn
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent, dims_of, least, most
from ansorpy.ir.sizes import at, fixed

__all__ = ["SizedAxis", "computed_tables", "resized_by", "resized_to"]

_FREE = ("asymmetric", "half_pixel", "tf_half_pixel_for_nn", "pytorch_half_pixel")
"""Coordinates that depend on the scale only; the last one if the result has several elements."""
_ROUNDED = {"floor": Fn.FLOOR, "ceil": Fn.CEIL}
_LARGEST = 1 << 24
"""Below this, products of float32 numbers and extents are exact where they are extents."""


@dataclass(frozen=True)
class SizedAxis:
    """An axis of ``size`` elements, resized to ``out``; ``scale`` is None if it varies."""

    axis: int
    size: AnyExtent
    out: AnyExtent
    scale: float | None

    def largest(self, coordinates: str) -> Axis | None:
        """The axis at its largest size, if its positions are those at all sizes."""
        alone = coordinates == "pytorch_half_pixel" and least(self.out) < 2
        if self.scale is None or coordinates not in _FREE or alone:
            return None
        return Axis(self.axis, most(self.size), most(self.out), self.scale)

    def refused(self, what: str) -> Unsupported:
        return Unsupported(what, one_size(dims_of([self.size, self.out])))


def resized_by(axis: int, size: AnyExtent, scale: float) -> SizedAxis:
    """An axis of *size* elements times *scale*, rounded down; refuses products that are rounded."""
    exact = ratio_of(scale).times(ratio_of(size))
    made = SizedAxis(axis, size, exact.floor(), scale)
    if most(exact.above) >= _LARGEST:
        raise made.refused(f"scale {scale:g} of {size}")
    return made


def resized_to(axis: int, size: AnyExtent, out: AnyExtent) -> SizedAxis:
    """An axis of *size* elements, resized to *out*."""
    greatest = {dim: dim.high for dim in dims_of([size, out])}
    ratio = Fraction(fixed(at(out, greatest)), max(fixed(at(size, greatest)), 1))
    fits = out * ratio.denominator == size * ratio.numerator
    scale = float(np.float32(ratio.numerator) / np.float32(ratio.denominator)) if fits else None
    return SizedAxis(axis, size, out, scale)


def computed_tables(
    ctx: NodeContext, axis: SizedAxis, mode: str, coordinates: str, rounding: str
) -> tuple[str, str | None]:
    """Source positions, and for mode linear weights, computed at run time: ``[out, elements]``."""
    place = _coordinates(ctx, axis, coordinates)

    def column(value: str, dtype: DType) -> str:
        return ctx.reshape(ctx.cast(value, dtype), (axis.out, 1))

    if mode == "nearest":
        return column(_nearest(ctx, axis, place, rounding), DType.INT32), None
    one = ctx.literal(1.0, DType.FLOAT32)
    before = ctx.apply(Fn.SUB, ctx.apply(Fn.CEIL, place), one)
    pair = [before, ctx.apply(Fn.ADD, before, one)]
    distances = [ctx.apply(Fn.ABS, ctx.apply(Fn.SUB, place, one_of)) for one_of in pair]
    weights = [ctx.apply(Fn.SUB, one, distance) for distance in distances]
    zero = ctx.literal(0.0, DType.FLOAT32)
    columns = [column(ctx.apply(Fn.MAX, w, zero), ctx.type().dtype) for w in weights]
    places = [column(p, DType.INT32) for p in pair]
    return ctx.emit(Concat(1), places), ctx.emit(Concat(1), columns)


def _coordinates(ctx: NodeContext, axis: SizedAxis, mode: str) -> str:
    """:func:`~ansorpy.frontend.onnx.operators.coordinates.coordinates`, as a value of the graph."""
    half = ctx.literal(0.5, DType.FLOAT32)
    x = ctx.cast(ctx.places(axis.out), DType.FLOAT32)
    size, out = (ctx.size(e, DType.FLOAT32) for e in (axis.size, axis.out))
    scale = ctx.apply(Fn.DIV, out, size)
    if axis.scale is not None:
        scale = ctx.literal(axis.scale, DType.FLOAT32)
    match mode:
        case "asymmetric":
            return ctx.apply(Fn.DIV, x, scale)
        case "tf_half_pixel_for_nn":
            return ctx.apply(Fn.DIV, ctx.apply(Fn.ADD, x, half), scale)
        case "align_corners":
            last = ctx.size(axis.size - 1, DType.FLOAT32)
            steps = ctx.apply(Fn.MAX, _length(ctx, axis), ctx.literal(1.0, DType.FLOAT32))
            return ctx.apply(Fn.DIV, ctx.apply(Fn.MUL, x, last), steps)
        case "half_pixel" | "pytorch_half_pixel":
            centred = ctx.apply(Fn.DIV, ctx.apply(Fn.ADD, x, half), scale)
            found = ctx.apply(Fn.SUB, centred, half)
            if mode == "half_pixel" or least(axis.out) > 1:
                return found
            alone = ctx.apply(Fn.EQUAL, out, ctx.literal(1.0, DType.FLOAT32))
            return ctx.apply(Fn.WHERE, alone, ctx.literal(0.0, DType.FLOAT32), found)
    raise axis.refused(f"coordinate_transformation_mode={mode}")


def _length(ctx: NodeContext, axis: SizedAxis) -> str:
    """The new length before truncation, less one."""
    exact = None if axis.scale is None else ratio_of(axis.scale).times(ratio_of(axis.size))
    if exact is None or exact.below == 1 or axis.scale is None:
        return ctx.size(axis.out - 1, DType.FLOAT32)
    scale, one = (ctx.literal(v, DType.FLOAT32) for v in (axis.scale, 1.0))
    whole = ctx.apply(Fn.MUL, ctx.size(axis.size, DType.FLOAT32), scale)
    return ctx.apply(Fn.SUB, whole, one)


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
    raise axis.refused(f"nearest_mode={rounding}")
