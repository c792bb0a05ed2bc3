"""Depthwise convolution: each channel is convolved separately."""

from __future__ import annotations

from dataclasses import dataclass

import ansorpy as ap
from ansorpy.ir.tensor import Tensor
from benchmarks.ops.families.convolution import Convolution, padded
from benchmarks.ops.layout import Layout

__all__ = ["DepthwiseConv2d"]


@dataclass(frozen=True)
class DepthwiseConv2d(Convolution):
    """``out[n, h, w, c]`` from ``x[n, h, w, c]`` and ``w[ky, kx, c]``; ``ci`` equals ``co``."""

    @property
    def groups(self) -> int:
        return self.ci

    def weight_layout(self) -> Layout:
        return Layout(((2,), (), (0,), (1,)))

    def tensors(self) -> list[Tensor]:
        x = ap.placeholder((self.batch, *self.size, self.ci), name="x")
        w = ap.placeholder((self.k, self.k, self.ci), name="w", constant=True)
        ry, rx = ap.reduce_axis(self.k, name="ry"), ap.reduce_axis(self.k, name="rx")
        source, s, d = padded(x, [self.pad] * 2), self.stride, self.dilation
        out = ap.compute(
            (self.batch, *self.out_size, self.ci),
            lambda n, i, j, c: ap.sum(
                source[n, i * s + ry * d, j * s + rx * d, c] * w[ry, rx, c], axis=(ry, rx)
            ),
            name="out",
        )
        return [x, w, out]
