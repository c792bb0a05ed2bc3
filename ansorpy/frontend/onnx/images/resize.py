"""Resize and Upsample: along each axis in turn, a weighted sum of a few elements.

The source positions and weights of each element are known at import, unless they depend on sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.frontend.onnx.images.coordinates import (
    COORDINATES,
    Places,
    ResizedAxis,
    ResizeRule,
    Weights,
    coordinates,
    nearest,
    weighted,
)
from ansorpy.frontend.onnx.images.sized_resize import (
    SizedAxis,
    computed_tables,
    resized_by,
    resized_by_data,
    resized_to,
)
from ansorpy.frontend.onnx.operands import with_operands
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Fn, Repeat, Resample, Shape
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent, dims_of, least, most

__all__ = ["OPERATORS"]

_MODES = ("nearest", "linear", "cubic")
AnyAxis = ResizedAxis | SizedAxis


def resize(ctx: NodeContext) -> str:
    """Supports opsets 10 (scales), 11 (region, scales or sizes) and 18 (axes, antialiasing)."""
    if ctx.opset < 11:
        return _resized(ctx, _old_rule(ctx), _by_scales(ctx, ctx.constant(1, "scales").reshape(-1)))
    rule = ResizeRule(
        ctx.attr("mode", "nearest"),
        ctx.attr("coordinate_transformation_mode", "half_pixel"),
        ctx.attr("nearest_mode", "round_prefer_floor"),
        bool(ctx.attr("antialias", 0)),
        bool(ctx.attr("exclude_outside", 0)),
        float(ctx.attr("cubic_coeff_a", -0.75)),
        float(ctx.attr("extrapolation_value", 0.0)),
    )
    if rule.coordinates not in COORDINATES:
        raise Unsupported(
            f"coordinate_transformation_mode={rule.coordinates}", f"use {', '.join(COORDINATES)}"
        )
    return _resized(ctx, rule, _axes(ctx, rule.coordinates))


def upsample(ctx: NodeContext) -> str:
    """Resize as it was called before opset 10; before opset 9, scales are an attribute."""
    given = ctx.constant(1, "scales") if ctx.has_input(1) else np.asarray(ctx.attr("scales", [1.0]))
    return _resized(ctx, _old_rule(ctx), _by_scales(ctx, given.reshape(-1)))


def _old_rule(ctx: NodeContext) -> ResizeRule:
    return ResizeRule(ctx.attr("mode", "nearest"))


def _by_scales(ctx: NodeContext, scales: Sequence[float] | np.ndarray) -> list[AnyAxis]:
    shape = ctx.shape()
    if len(scales) != len(shape) or min(scales) <= 0:
        raise Unsupported(f"scales={list(scales)}", f"give {len(shape)} positive numbers")
    return [
        _scaled(ctx, d, e, float(np.float32(s)))
        for d, (e, s) in enumerate(zip(shape, scales, strict=True))
    ]


def _scaled(
    ctx: NodeContext,
    axis: int,
    extent: AnyExtent,
    scale: float,
    region: tuple[float, float] = (0.0, 1.0),
) -> AnyAxis:
    if not isinstance(extent, int):
        return resized_by(ctx, axis, extent, scale)
    out = int(np.floor(np.float32(scale) * np.float32(extent)))
    return ResizedAxis(axis, extent, out, scale, region)


def _axes(ctx: NodeContext, coordinates: str) -> list[AnyAxis]:
    """Sizes, scales and regions of the axes that the node names; the default is all axes."""
    shape = ctx.shape()
    rank = len(shape)
    named = [ctx.axis(a, rank) for a in ctx.ints("axes", range(rank))]
    if ctx.has_input(2) and ctx.input(2) not in ctx.builder.constants:
        return [*resized_by_data(ctx, named, 2)]
    crops = coordinates == "tf_crop_and_resize"
    region = _optional(ctx, 1, "roi") if crops else np.zeros(0)
    scales = _optional(ctx, 2, "scales").astype(np.float32)
    sizes = ctx.extents(3, "sizes") if ctx.has_input(3) else ()
    given = sizes or tuple(map(float, scales))
    if any(least(size) < 1 <= most(size) for size in sizes):
        raise Unsupported(f"sizes={sizes}", "no axis may be empty; give bounds from 1 on: 1..640")
    positive = all(least(size) > 0 for size in sizes) and (scales > 0).all()
    if len(given) != len(named) or (sizes and scales.size) or not positive:
        raise Unsupported("scales, sizes", f"give {len(named)} positive numbers as one of them")
    regions = [
        (float(region[n]), float(region[n + len(named)])) if region.size else (0.0, 1.0)
        for n in range(len(named))
    ]
    if not sizes:
        return [
            _scaled(ctx, d, shape[d], scale, part)
            for d, scale, part in zip(named, given, regions, strict=True)
        ]
    have = [shape[d] for d in named]
    if dims_of((*have, *sizes)):
        if ctx.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
            raise ctx.undecided("keep_aspect_ratio_policy", (*have, *sizes))
        return [resized_to(d, e, out) for d, e, out in zip(named, have, sizes, strict=True)]
    found, wanted = _of_sizes(ctx, np.asarray(sizes, np.int64), have)
    return [
        ResizedAxis(d, shape[d], int(wanted[n]), float(found[n]), regions[n])
        for n, d in enumerate(named)
    ]


def _of_sizes(
    ctx: NodeContext, sizes: np.ndarray, have: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Scales and sizes, with one scale for all axes if the aspect ratio is to be kept."""
    policy = ctx.attr("keep_aspect_ratio_policy", "stretch")
    scales = sizes.astype(np.float32) / np.asarray(have, np.float32)
    if policy == "stretch":
        return scales, sizes
    if policy not in ("not_larger", "not_smaller"):
        raise Unsupported(f"keep_aspect_ratio_policy={policy}", "use one that ONNX defines")
    one = scales.min() if policy == "not_larger" else scales.max()
    return np.full_like(scales, one), np.floor(one * np.asarray(have, np.float32) + 0.5)


def _optional(ctx: NodeContext, index: int, what: str) -> np.ndarray:
    if not ctx.has_input(index):
        return np.zeros(0)
    return ctx.constant(index, what).reshape(-1)


def _resized(ctx: NodeContext, rule: ResizeRule, axes: Sequence[AnyAxis]) -> str:
    """Resize axes that shrink first, then those that grow, starting with the last axis.

    This order computes the fewest elements, and gathers within rows while these are still short.
    """
    if rule.mode not in _MODES:
        raise Unsupported(f"mode={rule.mode}", f"use {', '.join(_MODES)}")
    if any(least(axis.out) < 1 for axis in axes):
        raise Unsupported("scales, sizes", "no elements would be left; use larger ones")
    if rule.mode != "nearest":
        ctx.require_float()
    value = ctx.input()
    repeats = [1] * len(ctx.shape())
    for axis in sorted(axes, key=_turn):
        if axis.scale == 1 and axis.out == axis.size and rule.coordinates != "tf_crop_and_resize":
            continue  # tf_crop_and_resize may move elements even at scale 1
        table = axis if isinstance(axis, ResizedAxis) else axis.largest(rule.coordinates)
        if table is None or (table is not axis and rule.exclude_outside):
            value = _computed(ctx, value, rule, axis)
            continue
        places, weights = _taken(rule, table)
        times = _repeated(places, table) if weights is None else 0
        if times and axis.size * times == axis.out:
            repeats[axis.axis] = times
            continue
        tables = [ctx.literal(places, DType.INT32)]
        tables += [] if weights is None else [ctx.literal(weights)]
        value = ctx.emit(Resample(axis.axis, axis.out), [value, *tables])
    if any(times > 1 for times in repeats):
        value = ctx.emit(Repeat(tuple(repeats)), [value])
    if rule.coordinates == "tf_crop_and_resize":
        value = _marked_outside(ctx, value, rule, [a for a in axes if isinstance(a, ResizedAxis)])
    return value


def _turn(axis: AnyAxis) -> tuple[bool, int]:
    """Sorts axes: those that shrink, then those that grow, the last one first."""
    grows = most(axis.out) > most(axis.size)
    return grows, -axis.axis if grows else axis.axis


def _computed(ctx: NodeContext, value: str, rule: ResizeRule, axis: AnyAxis) -> str:
    """*value* resized along an axis whose source positions are computed at run time."""
    assert isinstance(axis, SizedAxis)
    places, weights = computed_tables(ctx, axis, rule)
    tables = [places] if weights is None else [places, weights]
    return ctx.emit(Resample(axis.axis, axis.out), [value, *tables])


def _taken(rule: ResizeRule, axis: ResizedAxis) -> tuple[Places, Weights | None]:
    """Source positions and weights; no weights where each result is one unchanged element."""
    at = coordinates(axis, rule.coordinates)
    if rule.mode == "nearest":
        return nearest(at, axis, rule.rounding).reshape(-1, 1), None
    places, weights = weighted(at, axis, rule)
    return (places[:, :1], None) if axis.size == 1 else (places, weights)


def _repeated(places: Places, axis: ResizedAxis) -> int:
    """How often each element is repeated in succession; 0 if *places* is not a repetition."""
    times = axis.out // axis.size
    return times if np.array_equal(places[:, 0], np.arange(axis.out) // max(times, 1)) else 0


def _marked_outside(
    ctx: NodeContext, value: str, rule: ResizeRule, axes: Sequence[ResizedAxis]
) -> str:
    """*value* with the extrapolation value wherever a coordinate is outside the image."""
    rank = len(ctx.shape())
    inside = np.ones((1,) * rank, bool)
    for axis in axes:
        at = coordinates(axis, rule.coordinates)
        shape: Shape = tuple(axis.out if d == axis.axis else 1 for d in range(rank))
        inside = inside & ((at >= 0) & (at <= axis.size - 1)).reshape(shape)
    if inside.all():
        return value
    mask = ctx.literal(inside, DType.BOOL)
    return ctx.apply(Fn.WHERE, mask, value, ctx.literal(rule.outside))


def _of_integers(build: Callable[[NodeContext], str]) -> Callable[[NodeContext], str]:
    """*build* of integers, too: their linear interpolation is cut to integers, as in onnx's
    reference and in onnxruntime."""

    def built(ctx: NodeContext) -> str:
        dtype = ctx.type().dtype
        if not dtype.is_int or ctx.attr("mode", "nearest") != "linear":
            return build(ctx)
        # In float32, equal elements may give a little less than themselves.
        wide = ctx.cast(ctx.input(), DType.FLOAT64)
        return ctx.cast(build(with_operands(ctx, {0: wide})), dtype)

    return built


OPERATORS = {"Resize": _of_integers(resize), "Upsample": _of_integers(upsample)}
