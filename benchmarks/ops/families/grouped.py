"""Grouped convolution, with the groups as a separate axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass

import ansorpy as ap
from ansorpy.ir.tensor import Tensor
from benchmarks.ops.families.convolution import Convolution, padded
from benchmarks.ops.layout import Layout

__all__ = ["GroupedConv2d"]


@dataclass(frozen=True)
class GroupedConv2d(Convolution):
    """``out[n, h, w, g, co]`` from ``x[n, h, w, g, ci]`` and ``w[ky, kx, g, ci, co]``.

    The case's ``ci`` and ``co`` count the channels of all groups.
    """

    _: KW_ONLY
    parts: int = 4

    @property
    def groups(self) -> int:
        return self.parts

    def weight_layout(self) -> Layout:
        return Layout(((2, 4), (3,), (0,), (1,)))

    def layouts(self) -> Mapping[str, Layout]:
        images = Layout(((0,), (3, 4), (1,), (2,)))
        return {"x": images, "w": self.weight_layout(), "out": images}

    def tensors(self) -> list[Tensor]:
        g, ci, co = self.parts, self.ci // self.parts, self.co // self.parts
        x = ap.placeholder((self.batch, *self.size, g, ci), name="x")
        w = ap.placeholder((self.k, self.k, g, ci, co), name="w", constant=True)
        ry, rx = ap.reduce_axis(self.k, name="ry"), ap.reduce_axis(self.k, name="rx")
        rc = ap.reduce_axis(ci, name="rc")
        source, s, d = padded(x, [self.pad] * 2), self.stride, self.dilation
        out = ap.compute(
            (self.batch, *self.out_size, g, co),
            lambda n, i, j, part, c: ap.sum(
                source[n, i * s + ry * d, j * s + rx * d, part, rc] * w[ry, rx, part, rc, c],
                axis=(ry, rx, rc),
            ),
            name="out",
        )
        return [x, w, out]
