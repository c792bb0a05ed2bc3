"""One-dimensional convolution, as over audio or text."""

from __future__ import annotations

from dataclasses import dataclass

import ansorpy as ap
from ansorpy.ir.tensor import Tensor
from benchmarks.ops.families.convolution import Convolution, padded
from benchmarks.ops.layout import Layout

__all__ = ["Conv1d"]


@dataclass(frozen=True)
class Conv1d(Convolution):
    """``out[n, x, co]`` from ``x[n, x, ci]`` and ``w[k, ci, co]``."""

    def weight_layout(self) -> Layout:
        return Layout(((2,), (1,), (0,)))

    def tensors(self) -> list[Tensor]:
        x = ap.placeholder((self.batch, *self.size, self.ci), name="x")
        w = ap.placeholder((self.k, self.ci, self.co), name="w", constant=True)
        rx, rc = ap.reduce_axis(self.k, name="rx"), ap.reduce_axis(self.ci, name="rc")
        source, stride, dilation = padded(x, [self.pad]), self.stride, self.dilation
        out = ap.compute(
            (self.batch, *self.out_size, self.co),
            lambda n, i, co: ap.sum(
                source[n, i * stride + rx * dilation, rc] * w[rx, rc, co], axis=(rx, rc)
            ),
            name="out",
        )
        return [x, w, out]
