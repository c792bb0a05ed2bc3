"""Resize and Upsample: along each axis in turn, a weighted sum of a few elements.

Shapes are static, so the source positions and weights of each element are known at import.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext, Unsupported
from ansorpy.frontend.onnx.operators.coordinates import (
    COORDINATES,
    Axis,
    Places,
    Weights,
    coordinates,
    nearest,
    weighted,
)
from ansorpy.graph.ops import Fn, Repeat, Resample, Shape
from ansorpy.ir.dtypes import DType

__all__ = ["OPERATORS"]

_MODES = ("nearest", "linear", "cubic")


@dataclass(frozen=True)
class _Rule:
    """The attributes that apply to all axes."""

    mode: str
    coordinates: str = "asymmetric"
    rounding: str = "by direction"
    antialias: bool = False
    exclude_outside: bool = False
    cubic: float = -0.75
    outside: float = 0.0


def resize(ctx: NodeContext) -> str:
    """Supports opsets 10 (scales), 11 (region, scales or sizes) and 18 (axes, antialiasing)."""
    if ctx.opset < 11:
        return _resized(ctx, _old_rule(ctx), _by_scales(ctx, ctx.constant(1, "scales").reshape(-1)))
    rule = _Rule(
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
    return _resized(ctx, rule, _axes(ctx))


def upsample(ctx: NodeContext) -> str:
    """Resize as it was called before opset 10; before opset 9, scales are an attribute."""
    given = ctx.constant(1, "scales") if ctx.has_input(1) else np.asarray(ctx.attr("scales", [1.0]))
    return _resized(ctx, _old_rule(ctx), _by_scales(ctx, given.reshape(-1)))


def _old_rule(ctx: NodeContext) -> _Rule:
    return _Rule(ctx.attr("mode", "nearest"))


def _by_scales(ctx: NodeContext, scales: Sequence[float] | np.ndarray) -> list[Axis]:
    shape = ctx.shape()
    if len(scales) != len(shape) or min(scales) <= 0:
        raise Unsupported(f"scales={list(scales)}", f"give {len(shape)} positive numbers")
    return [
        Axis(d, e, int(np.floor(np.float32(s) * np.float32(e))), float(np.float32(s)))
        for d, (e, s) in enumerate(zip(shape, scales, strict=True))
    ]


def _axes(ctx: NodeContext) -> list[Axis]:
    """Sizes, scales and regions of the axes that the node names; the default is all axes."""
    shape = ctx.shape()
    rank = len(shape)
    named = [ctx.axis(a, rank) for a in ctx.ints("axes", range(rank))]
    region = _optional(ctx, 1, "roi")
    scales, sizes = _optional(ctx, 2, "scales"), _optional(ctx, 3, "sizes")
    given = scales if scales.size else sizes
    if given.size != len(named) or (scales.size and sizes.size) or given.min() <= 0:
        raise Unsupported("scales, sizes", f"give {len(named)} positive numbers as one of them")
    if not scales.size:
        scales, sizes = _of_sizes(ctx, sizes, [shape[d] for d in named])
    else:
        scales = scales.astype(np.float32)
        sizes = np.floor(scales * np.asarray([shape[d] for d in named], np.float32))
    return [
        Axis(
            d, shape[d], int(sizes[n]), float(scales[n]),
            (float(region[n]), float(region[n + len(named)])) if region.size else (0.0, 1.0),
        )
        for n, d in enumerate(named)
    ]  # fmt: skip


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
    return np.asarray(ctx.constant(index, what)).reshape(-1)


def _resized(ctx: NodeContext, rule: _Rule, axes: Sequence[Axis]) -> str:
    """Resize axes that shrink first, then those that grow, starting with the last axis.

    This order computes the fewest elements, and gathers within rows while these are still short.
    """
    if rule.mode not in _MODES:
        raise Unsupported(f"mode={rule.mode}", f"use {', '.join(_MODES)}")
    if any(axis.out < 1 for axis in axes):
        raise Unsupported("scales, sizes", "no elements would be left; use larger ones")
    if rule.mode != "nearest":
        ctx.require_float()
    value = ctx.input()
    times = [1] * len(ctx.shape())
    for axis in sorted(
        axes, key=lambda a: (a.out > a.size, a.axis if a.out <= a.size else -a.axis)
    ):
        if axis.scale == 1 and axis.out == axis.size and rule.coordinates != "tf_crop_and_resize":
            continue  # tf_crop_and_resize may move elements even at scale 1
        places, weights = _taken(rule, axis)
        times[axis.axis] = _repeated(places, axis) if weights is None else 0
        if not times[axis.axis]:
            tables = [ctx.literal(places, DType.INT32)]
            tables += [] if weights is None else [ctx.literal(weights)]
            value = ctx.emit(Resample(axis.axis), [value, *tables])
    value = ctx.emit(Repeat(tuple(t or 1 for t in times)), [value]) if max(times) > 1 else value
    if rule.coordinates == "tf_crop_and_resize":
        value = _marked_outside(ctx, value, rule, axes)
    return value


def _taken(rule: _Rule, axis: Axis) -> tuple[Places, Weights | None]:
    """Source positions and weights; no weights where each result is one unchanged element."""
    at = coordinates(axis, rule.coordinates)
    if rule.mode == "nearest":
        return nearest(at, axis, rule.rounding).reshape(-1, 1), None
    places, weights = weighted(
        at, axis, rule.mode, rule.antialias, rule.exclude_outside, rule.cubic
    )
    return (places[:, :1], None) if axis.size == 1 else (places, weights)


def _repeated(places: Places, axis: Axis) -> int:
    """How often each element is repeated in succession; 0 if *places* is not a repetition."""
    times = axis.out // axis.size
    return times if np.array_equal(places[:, 0], np.arange(axis.out) // max(times, 1)) else 0


def _marked_outside(ctx: NodeContext, value: str, rule: _Rule, axes: Sequence[Axis]) -> str:
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


OPERATORS = {"Resize": resize, "Upsample": upsample}
