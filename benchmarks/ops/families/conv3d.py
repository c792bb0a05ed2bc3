"""Three-dimensional convolution, as over video."""

from __future__ import annotations

from dataclasses import dataclass

import ansorpy as ap
from ansorpy.ir.tensor import Tensor
from benchmarks.ops.families.convolution import Convolution, padded
from benchmarks.ops.layout import Layout

__all__ = ["Conv3d"]


@dataclass(frozen=True)
class Conv3d(Convolution):
    """``out[n, d, h, w, co]`` from ``x[n, d, h, w, ci]`` and ``w[kd, ky, kx, ci, co]``."""

    def weight_layout(self) -> Layout:
        return Layout(((4,), (3,), (0,), (1,), (2,)))

    def tensors(self) -> list[Tensor]:
        k = self.k
        x = ap.placeholder((self.batch, *self.size, self.ci), name="x")
        w = ap.placeholder((k, k, k, self.ci, self.co), name="w", constant=True)
        rd, ry, rx = (ap.reduce_axis(k, name=name) for name in ("rd", "ry", "rx"))
        rc = ap.reduce_axis(self.ci, name="rc")
        source, s, a = padded(x, [self.pad] * 3), self.stride, self.dilation
        out = ap.compute(
            (self.batch, *self.out_size, self.co),
            lambda n, d, i, j, co: ap.sum(
                source[n, d * s + rd * a, i * s + ry * a, j * s + rx * a, rc]
                * w[rd, ry, rx, rc, co],
                axis=(rd, ry, rx, rc),
            ),
            name="out",
        )
        return [x, w, out]
