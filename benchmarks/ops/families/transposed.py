"""Transposed convolution without multiplications by inserted zeros.

An output pixel is reached by every ``stride``-th tap only: those that leave its residue.  So the
sum runs over ``ceil(k / stride)`` taps an axis, and the residue says which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import helper

import ansorpy as ap
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import Tensor
from benchmarks.ops.case import OnnxGraph
from benchmarks.ops.families.convolution import Convolution, channels_last_formats, padded
from benchmarks.ops.layout import Layout

__all__ = ["TransposedConv2d"]


@dataclass(frozen=True)
class TransposedConv2d(Convolution):
    """``out[n, h, w, co]`` from ``x[n, h, w, ci]`` and ``w[ky, kx, ci, co]``.

    ``out[y] += x[i] * w[k]`` wherever ``y + pad == i * stride + k``; with ``t`` of the taps that
    fit, ``k = (y + pad) % stride + stride * t`` and ``i = (y + pad) // stride - t``.
    """

    @property
    def out_size(self) -> tuple[int, ...]:
        return tuple((s - 1) * self.stride - 2 * self.pad + self.k for s in self.size)

    def weight_layout(self) -> Layout:
        return Layout(((2,), (3,), (0,), (1,)))

    def onnx_graphs(self) -> Sequence[OnnxGraph]:
        node = helper.make_node("ConvTranspose", ["x", "w"], ["out"], **self.attributes())
        return [OnnxGraph((node,))]

    def torch_calls(self, torch: Any, values: Mapping[str, Any]) -> Sequence[Callable[[], Any]]:
        conv = torch.nn.functional.conv_transpose2d

        def call(x: Any, w: Any) -> Callable[[], Any]:
            return lambda: conv(x, w, None, self.stride, self.pad)

        return [
            call(values["x"].to(memory_format=form), values["w"].to(memory_format=form))
            for form in channels_last_formats(torch, self.rank)
        ]

    def tensors(self) -> list[Tensor]:
        stride, pad = self.stride, self.pad
        x = ap.placeholder((self.batch, *self.size, self.ci), name="x")
        w = ap.placeholder((self.k, self.k, self.ci, self.co), name="w", constant=True)
        taps = -(-self.k // stride)
        ty, tx = ap.reduce_axis(taps, name="ty"), ap.reduce_axis(taps, name="tx")
        rc = ap.reduce_axis(self.ci, name="rc")
        source = padded(x, [taps - 1] * 2)

        def body(n: Expr, i: Expr, j: Expr, co: Expr) -> Expr:
            ky, kx = (i + pad) % stride + ty * stride, (j + pad) % stride + tx * stride
            iy = (i + pad) // stride - ty + (taps - 1)
            ix = (j + pad) // stride - tx + (taps - 1)
            product = source[n, iy, ix, rc] * w[ky, kx, rc, co]
            if self.k % stride:
                product = ap.select(
                    ap.all_of(ky < self.k, kx < self.k),
                    product,
                    0.0,
                )
            return ap.sum(product, axis=(ty, tx, rc))

        out = ap.compute(
            (self.batch, *self.out_size, self.co), body, name="out", names=("n", "i", "j", "co")
        )
        return [x, w, out]
