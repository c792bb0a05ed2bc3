"""Transposed convolutions written in several ways, for the tests of algorithms."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ansorpy.ir import builders as ap
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, placeholder, reduce_axis

__all__ = ["by_residue", "depthwise", "gathered", "grouped", "zeros_inserted"]


def gathered(
    sizes: Sequence[int], taps: Sequence[int], strides: Sequence[int], pad: int,
    ci: int = 3, co: int = 4, *, batch: int = 1, constant: bool = True, dilation: int = 1,
    more: int = 0,
) -> list[Tensor]:  # fmt: skip
    """Channels last: a sum over all taps, guarded where none meets an element; then relu.

    *more* outputs follow in each window, as ``output_padding`` asks for.
    """
    x = placeholder((batch, *sizes, ci), name="X")
    w = placeholder((*taps, ci, co), name="W", constant=constant)
    rc = reduce_axis(ci, name="rc")
    ks = [reduce_axis(k, name=f"k{d}") for d, k in enumerate(taps)]

    def summed(*i: Expr) -> Expr:
        at = [y + pad - k * dilation for y, k in zip(i[1:-1], ks, strict=True)]
        met = [
            c
            for a, s, size in zip(at, strides, sizes, strict=True)
            for c in ((a % s).equal(0), a >= 0, a < size * s)
        ]
        read = x[(i[0], *(a // s for a, s in zip(at, strides, strict=True)), rc)]
        product = ap.select(ap.all_of(*met), read * w[(*ks, rc, i[-1])], 0.0)
        return ap.sum(product, axis=(*ks, rc))

    outs = [
        (n - 1) * s - 2 * pad + dilation * (k - 1) + 1 + more
        for n, k, s in zip(sizes, taps, strides, strict=True)
    ]
    conv = _compute((batch, *outs, co), summed, "conv")
    return [x, w, _compute(conv.shape, lambda *i: ap.maximum(conv[i], 0.0), "relu")]


def zeros_inserted(
    sizes: Sequence[int], taps: Sequence[int], strides: Sequence[int], pad: int,
    ci: int = 3, co: int = 4,
) -> list[Tensor]:  # fmt: skip
    """Channels first: zeros between the elements, padding, and a convolution with taps reversed."""
    x = placeholder((1, ci, *sizes), name="X")
    w = placeholder((ci, co, *taps), name="W", constant=True)
    apart = [(n - 1) * s + 1 for n, s in zip(sizes, strides, strict=True)]
    edges = [k - 1 - pad for k in taps]

    def inserted(*i: Expr) -> Expr:
        met = [(y % s).equal(0) for y, s in zip(i[2:], strides, strict=True)]
        read = x[(*i[:2], *(y // s for y, s in zip(i[2:], strides, strict=True)))]
        return ap.select(ap.all_of(*met), read, 0.0)

    dilate = _compute((1, ci, *apart), inserted, "dilate")

    def padded(*i: Expr) -> Expr:
        inside = [
            c
            for y, e, n in zip(i[2:], edges, apart, strict=True)
            for c in (y >= e, y < n + e)
        ]  # fmt: skip
        at = (y - e for y, e in zip(i[2:], edges, strict=True))
        return ap.select(ap.all_of(*inside), dilate[(*i[:2], *at)], 0.0)

    shape = (1, ci, *(n + 2 * e for n, e in zip(apart, edges, strict=True)))
    pads = _compute(shape, padded, "pad")
    rc = reduce_axis(ci, name="rc")
    ks = [reduce_axis(k, name=f"k{d}") for d, k in enumerate(taps)]

    def summed(n: Expr, o: Expr, *spots: Expr) -> Expr:
        reversed_taps = (t - 1 - k for t, k in zip(taps, ks, strict=True))
        read = pads[(n, rc, *(y + k for y, k in zip(spots, ks, strict=True)))]
        return ap.sum(read * w[(rc, o, *reversed_taps)], axis=(rc, *ks))

    outs = [n + 2 * e - k + 1 for n, e, k in zip(apart, edges, taps, strict=True)]
    return [x, w, _compute((1, co, *outs), summed, "conv")]


def by_residue(
    size: int, taps: int, stride: int, pad: int, ci: int = 3, co: int = 4
) -> list[Tensor]:
    """One window, the residues of its outputs an axis of their own."""
    x = placeholder((size, ci), name="X")
    w = placeholder((taps, ci, co), name="W", constant=True)
    t, rc = reduce_axis(-(-taps // stride), name="t"), reduce_axis(ci, name="rc")

    def summed(h: Expr, a: Expr, o: Expr) -> Expr:
        tap, at = (a + pad) % stride + t * stride, h + (a + pad) // stride - t
        met = ap.all_of(at >= 0, at < size, tap < taps)
        return ap.sum(ap.select(met, x[at, rc] * w[tap, rc, o], 0.0), axis=(t, rc))

    rows = -(-((size - 1) * stride - 2 * pad + taps) // stride)
    return [x, w, compute((rows, stride, co), summed, name="conv")]


def grouped(size: int, taps: int, stride: int, groups: int, ci: int, co: int) -> list[Tensor]:
    """One window, the channels of the data counted by groups and channels of each."""
    x = placeholder((size, groups * ci), name="X")
    w = placeholder((taps, groups, ci, co), name="W", constant=True)
    k, rc = reduce_axis(taps, name="k"), reduce_axis(ci, name="rc")

    def summed(y: Expr, g: Expr, o: Expr) -> Expr:
        at = y + 1 - k
        met = ap.all_of((at % stride).equal(0), at >= 0, at < stride * size)
        return ap.sum(ap.select(met, x[at // stride, g * ci + rc] * w[k, g, rc, o], 0.0), (k, rc))

    return [x, w, compute((stride * size, groups, co), summed, name="conv")]


def depthwise(size: int, channels: int) -> list[Tensor]:
    """Every channel by itself, 3 taps, stride 2."""
    x = placeholder((size, channels), name="X")
    w = placeholder((3, channels), name="W", constant=True)
    k = reduce_axis(3, name="k")

    def summed(y: Expr, c: Expr) -> Expr:
        at = y + 1 - k
        met = ap.all_of((at % 2).equal(0), at >= 0, at < 2 * size)
        return ap.sum(ap.select(met, x[at // 2, c] * w[k, c], 0.0), axis=k)

    return [x, w, compute((2 * size - 1, channels), summed, name="conv")]


def _compute(shape: Sequence[int], fn: object, name: str) -> ComputeOp:
    assert callable(fn) and prod(shape) > 0
    return compute(shape, fn, name=name, names=[f"i{d}" for d in range(len(shape))])
