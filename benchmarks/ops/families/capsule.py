"""Capsule convolution: every pixel and channel holds a 4x4 matrix, and matrices are multiplied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import ansorpy as ap
from ansorpy.ir.tensor import Tensor
from benchmarks.ops.families.convolution import Convolution, padded
from benchmarks.ops.layout import Layout

__all__ = ["CapsuleConv2d"]

POSE = 4


@dataclass(frozen=True)
class CapsuleConv2d(Convolution):
    """``out[n, h, w, i, j, co]`` from ``x[n, h, w, i, k, ci]`` and ``w[ky, kx, k, j, ci, co]``.

    For the peers it is a convolution with 4 times the batch (including ``i``), from ``4 ci``
    channels ``(k, ci)`` to ``4 co`` channels ``(j, co)``.
    """

    def weight_layout(self) -> Layout:
        return Layout(((3, 5), (2, 4), (0,), (1,)))

    def layouts(self) -> Mapping[str, Layout]:
        images = Layout(((0, 3), (4, 5), (1,), (2,)))
        return {"x": images, "w": self.weight_layout(), "out": images}

    def tensors(self) -> list[Tensor]:
        x = ap.placeholder((self.batch, *self.size, POSE, POSE, self.ci), name="x")
        w = ap.placeholder(
            (self.k, self.k, POSE, POSE, self.ci, self.co), name="w", constant=True
        )  # fmt: skip
        ry, rx = ap.reduce_axis(self.k, name="ry"), ap.reduce_axis(self.k, name="rx")
        rk, rc = ap.reduce_axis(POSE, name="rk"), ap.reduce_axis(self.ci, name="rc")
        source, s = padded(x, [self.pad] * 2), self.stride
        out = ap.compute(
            (self.batch, *self.out_size, POSE, POSE, self.co),
            lambda n, h, v, i, j, co: ap.sum(
                source[n, h * s + ry, v * s + rx, i, rk, rc] * w[ry, rx, rk, j, rc, co],
                axis=(ry, rx, rk, rc),
            ),
            name="out",
        )
        return [x, w, out]
