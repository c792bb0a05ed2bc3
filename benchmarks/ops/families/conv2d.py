"""Two-dimensional convolution, dense or dilated."""

from __future__ import annotations

from dataclasses import dataclass

import ansorpy as ap
from ansorpy.ir.tensor import Tensor
from benchmarks.ops.families.convolution import Convolution, padded
from benchmarks.ops.layout import Layout

__all__ = ["Conv2d"]


@dataclass(frozen=True)
class Conv2d(Convolution):
    """``out[n, h, w, co]`` from ``x[n, h, w, ci]`` and ``w[ky, kx, ci, co]``."""

    def weight_layout(self) -> Layout:
        return Layout(((3,), (2,), (0,), (1,)))

    def tensors(self) -> list[Tensor]:
        x, w, out = self.convolution("out")
        return [x, w, out]

    def convolution(self, name: str) -> tuple[Tensor, Tensor, Tensor]:
        """Input, weight, and the convolution, named *name*."""
        x = ap.placeholder((self.batch, *self.size, self.ci), name="x")
        w = ap.placeholder((self.k, self.k, self.ci, self.co), name="w", constant=True)
        ry, rx = ap.reduce_axis(self.k, name="ry"), ap.reduce_axis(self.k, name="rx")
        rc = ap.reduce_axis(self.ci, name="rc")
        source, stride, dilation = padded(x, [self.pad] * 2), self.stride, self.dilation
        conv = ap.compute(
            (self.batch, *self.out_size, self.co),
            lambda n, i, j, co: ap.sum(
                source[n, i * stride + ry * dilation, j * stride + rx * dilation, rc]
                * w[ry, rx, rc, co],
                axis=(ry, rx, rc),
            ),
            name=name,
        )
        return x, w, conv
