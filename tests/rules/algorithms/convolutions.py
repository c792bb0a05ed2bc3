"""Convolutions written in several ways, for the tests of algorithms."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.ir import builders as ap
from ansorpy.ir.expr import Expr
from ansorpy.ir.extents import Extent
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis

__all__ = ["convolution", "first_layout"]


def convolution(
    sizes: Sequence[Extent], taps: Sequence[int], ci: int, co: int, *, batch: int = 1, pad: int = 0,
    stride: int = 1, dilation: int = 1, constant: bool = True,
) -> list[Tensor]:  # fmt: skip
    """Channels last, any number of windows, padded alike on all sides, then relu."""
    d = len(sizes)
    x = placeholder((batch, *sizes, ci), name="X")
    w = placeholder((*taps, ci, co), name="W", constant=constant)

    def padded(n: Expr, *rest: Expr) -> Expr:
        *spots, c = rest
        inside = [
            bound
            for spot, size in zip(spots, sizes, strict=True)
            for bound in (spot >= pad, spot < size + pad)
        ]
        return ap.select(ap.all_of(*inside), x[(n, *(s - pad for s in spots), c)], 0.0)

    read: Tensor = x
    if pad:
        shape = (batch, *(size + 2 * pad for size in sizes), ci)
        names = ("n", *(f"y{k}" for k in range(d)), "c")
        read = compute(shape, padded, name="pad", names=names)
    ks = [reduce_axis(t, name=f"k{n}") for n, t in enumerate(taps)]
    rc = reduce_axis(ci, name="rc")
    outs = [
        (size + 2 * pad - dilation * (t - 1) - 1) // stride + 1
        for size, t in zip(sizes, taps, strict=True)
    ]

    def summed(n: Expr, *rest: Expr) -> Expr:
        *spots, o = rest
        at = (s * stride + k * dilation for s, k in zip(spots, ks, strict=True))
        return ap.sum(read[(n, *at, rc)] * w[(*ks, rc, o)], axis=(*ks, rc))

    names = ("n", *(f"h{k}" for k in range(d)), "o")
    conv = compute((batch, *outs, co), summed, name="conv", names=names)
    relu = compute(conv.shape, lambda *i: ap.maximum(conv[i], 0.0), name="relu")
    return [x, w, relu]


def first_layout(h: int, w: int, ci: int, co: int, groups: int = 1) -> list[Tensor]:
    """Channels first (NCHW, OIHW), 3x3, no padding; grouped with an axis for the group."""
    x = placeholder((1, groups, ci, h, w), name="X")
    f = placeholder((groups, co, ci, 3, 3), name="F", constant=True)
    rc, ry, rx = (reduce_axis(e, name=a) for e, a in ((ci, "rc"), (3, "ry"), (3, "rx")))
    shape = (1, groups, co, h - 2, w - 2)

    def summed(n: Expr, g: Expr, o: Expr, y: Expr, z: Expr) -> Expr:
        return ap.sum(f[g, o, rc, ry, rx] * x[n, g, rc, y + ry, z + rx], axis=(rc, ry, rx))

    return [x, f, compute(shape, summed, name="conv")]
