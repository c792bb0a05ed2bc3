"""Transposed convolution without multiplications by inserted zeros.

Only every ``stride``-th tap contributes to an output pixel: those that match its residue modulo the
stride.  So residues are separate axes, and the sum runs over ``ceil(k / stride)`` taps per axis.
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
    """``out[n, h, a, w, b, co]`` is pixel ``(h * stride + a, w * stride + b)``.

    From ``x[n, h, w, ci]`` and ``w[ky, kx, ci, co]``: ``out[y] += x[i] * w[k]`` wherever
    ``y + pad == i * stride + k``.  With ``t`` numbering the matching taps, this means
    ``k = (a + pad) % stride + stride * t`` and ``i = h + (a + pad) // stride - t``.
    If the image is not a multiple of the stride, a last stage removes the excess.
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

    @property
    def is_whole(self) -> bool:
        """True when all residues have the same number of pixels."""
        return not any(size % self.stride for size in self.out_size)

    def layouts(self) -> Mapping[str, Layout]:
        found = dict(super().layouts())
        if self.is_whole:
            found["out"] = Layout(((0,), (5,), (1, 2), (3, 4)))
        return found

    def tensors(self) -> list[Tensor]:
        x = ap.placeholder((self.batch, *self.size, self.ci), name="x")
        w = ap.placeholder((self.k, self.k, self.ci, self.co), name="w", constant=True)
        parts = self._parts(x, w, "out" if self.is_whole else "parts")
        if self.is_whole:
            return [x, w, parts]
        stride = self.stride
        out = ap.compute(
            (self.batch, *self.out_size, self.co),
            lambda n, i, j, co: parts[n, i // stride, i % stride, j // stride, j % stride, co],
            name="out",
        )
        return [x, w, out]

    def _parts(self, x: Tensor, w: Tensor, name: str) -> Tensor:
        stride, pad, taps = self.stride, self.pad, -(-self.k // self.stride)
        ty, tx = ap.reduce_axis(taps, name="ty"), ap.reduce_axis(taps, name="tx")
        rc = ap.reduce_axis(self.ci, name="rc")
        source = padded(x, [taps - 1] * 2)

        def body(n: Expr, i: Expr, a: Expr, j: Expr, b: Expr, co: Expr) -> Expr:
            ky, kx = (a + pad) % stride + ty * stride, (b + pad) % stride + tx * stride
            iy = i + (a + pad) // stride - ty + (taps - 1)
            ix = j + (b + pad) // stride - tx + (taps - 1)
            product = source[n, iy, ix, rc] * w[ky, kx, rc, co]
            if self.k % stride:
                product = ap.select(ap.all_of(ky < self.k, kx < self.k), product, 0.0)
            return ap.sum(product, axis=(ty, tx, rc))

        rows, columns = (-(-size // stride) for size in self.out_size)
        shape = (self.batch, rows, stride, columns, stride, self.co)
        return ap.compute(shape, body, name=name, names=("n", "i", "a", "j", "b", "co"))
