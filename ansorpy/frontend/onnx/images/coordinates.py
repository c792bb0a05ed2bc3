"""Source positions and weights of the elements of a resized axis.

Coordinates are computed in float32, as in onnxruntime, so that those halfway between two elements
round to the same element.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansorpy.frontend.onnx.unsupported import Unsupported

__all__ = [
    "COORDINATES", "Places", "ResizeRule", "ResizedAxis", "Weights", "coordinates", "nearest",
    "weighted",
]  # fmt: skip

Places = NDArray[np.int64]
Weights = NDArray[np.float64]

COORDINATES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
    "tf_half_pixel_for_nn", "tf_crop_and_resize",
)  # fmt: skip


@dataclass(frozen=True)
class ResizeRule:
    """The attributes that apply to all axes."""

    mode: str
    coordinates: str = "asymmetric"
    rounding: str = "by direction"
    antialias: bool = False
    exclude_outside: bool = False
    cubic: float = -0.75
    outside: float = 0.0


@dataclass(frozen=True)
class ResizedAxis:
    """An axis of ``size`` elements, resized to ``out``; ``region`` is in fractions of the axis."""

    axis: int
    size: int
    out: int
    scale: float
    region: tuple[float, float] = (0.0, 1.0)

    @property
    def length(self) -> float:
        """The new length before truncation; ``out`` itself if it differs only by rounding."""
        exact = float(np.float32(self.scale) * np.float32(self.size))
        return float(self.out) if math.isclose(exact, self.out, rel_tol=1e-5) else exact


def coordinates(axis: ResizedAxis, mode: str) -> NDArray[np.float32]:
    """The position in the old axis, in elements, of each element of the new one."""
    f = np.float32
    x, scale = np.arange(axis.out, dtype=np.float32), f(axis.scale)
    last = f(axis.size - 1)
    match mode:
        case "asymmetric":
            found = x / scale
        case "tf_half_pixel_for_nn":
            found = (x + f(0.5)) / scale
        case "align_corners":
            found = x * last / f(max(axis.length - 1, 1)) if axis.out > 1 else x
        case "tf_crop_and_resize":
            first, end = map(f, axis.region)
            begin = first * last if axis.out > 1 else f(0.5) * (first + end) * last
            found = begin + x * (end - first) * last / f(max(axis.out - 1, 1))
        case "half_pixel_symmetric":
            adjustment = f(axis.out) / (scale * f(axis.size))
            offset = f(axis.size) / f(2) * (f(1) - adjustment)
            found = offset + (x + f(0.5)) / scale - f(0.5)
        case "pytorch_half_pixel" if axis.out == 1:
            found = np.zeros_like(x)
        case _:
            found = (x + f(0.5)) / scale - f(0.5)
    return found.astype(np.float32)


def nearest(at: NDArray[np.float32], axis: ResizedAxis, rounding: str) -> Places:
    """The element nearest to each coordinate; ``by direction`` rounds up if the axis shrinks."""
    half = np.float32(0.5)
    match rounding:
        case "round_prefer_floor":
            found = np.ceil(at - half)
        case "round_prefer_ceil":
            found = np.floor(at + half)
        case "ceil":
            found = np.ceil(at)
        case "by direction" if axis.scale < 1:
            found = np.ceil(at)
        case "floor" | "by direction":
            found = np.floor(at)
        case _:
            raise Unsupported(f"nearest_mode={rounding}", "use one that ONNX defines")
    places: Places = np.clip(found, 0, axis.size - 1).astype(np.int64)
    return places


def weighted(
    at: NDArray[np.float32], axis: ResizedAxis, rule: ResizeRule
) -> tuple[Places, Weights]:
    """Elements around each coordinate and their weights, both ``[out, taps]``.

    With ``antialias``, the filter is stretched if the axis shrinks.  Beyond the ends, the last
    element repeats; with ``exclude_outside``, positions there have no weight.
    """
    is_linear = rule.mode == "linear"
    reach = 1 if is_linear else 2
    stretch = min(axis.scale, 1.0) if rule.antialias else 1.0
    start = int(np.floor(-reach / stretch)) + 1
    before = np.ceil(at.astype(np.float64)) - 1
    places = before[:, None] + np.arange(start, 2 - start)
    distance = np.abs(places - at[:, None]) * stretch
    weights = np.maximum(1 - distance, 0) if is_linear else _cubic(distance, rule.cubic)
    if rule.exclude_outside:
        weights = np.where((places >= 0) & (places < axis.size), weights, 0)
    total: Weights = weights.sum(1, keepdims=True)
    weights = weights / np.where(total == 0, 1, total)
    inside: Places = np.clip(places, 0, axis.size - 1).astype(np.int64)
    return inside, weights


def _cubic(x: Weights, a: float) -> Weights:
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))
