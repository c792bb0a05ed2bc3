"""Operators that networks rarely have: signals, losses, sampling, computed places, newer norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import helper

from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.values import Unstable

__all__ = ["FURTHER"]


def mean_variance(net: Growing) -> None:
    """In float32: the functions that define it, as onnx infers types, know no other."""
    x = net.pick_rank(4, 4)
    if x.dtype != np.float32:
        raise Unstable("onnx infers no types of it")
    if min(x.shape[0] * x.shape[2], x.shape[3]) < 2:
        raise Unstable("one element has no variance")
    net.add("MeanVarianceNormalization", x, axes=net.one_of([[0, 2, 3], [3], [2, 3]]))


def root_mean_square(net: Growing) -> None:
    x = net.pick(lambda v: v.rank > 0)
    axis = net.count(0, x.rank - 1)
    if net.opset >= 23:
        scale = net.like(x, net.uniform(0.5, 1.5, *x.shape[axis:]))
        net.add("RMSNormalization", x, scale, axis=axis)


def swish(net: Growing) -> None:
    if net.opset >= 24:
        net.add("Swish", net.pick(), alpha=net.one_of([0.5, 1.0, 2.0]))


def products_so_far(net: Growing) -> None:
    x = net.add("Sigmoid", net.pick(lambda v: v.rank > 0))
    axis = net.constant(np.asarray(net.count(-x.rank, x.rank - 1)))
    if net.opset >= 26:
        net.add("CumProd", x, axis, exclusive=net.count(0, 1), reverse=net.count(0, 1))


def fourier(net: Growing) -> None:
    """A transform of real or complex numbers, whole or one half, forwards or back."""
    rows, n = net.count(1, 3), net.count(1, 12)
    parts = net.one_of([1, 2])
    x = net.new_input([rows, n, parts])
    inverse = net.count(0, 1) if parts == 2 else 0
    half = net.count(0, 1) if parts == 1 else 0
    length = net.constant(np.asarray(net.count(1, 12))) if net.chance() else None
    given: dict[str, Any] = {"inverse": inverse, "onesided": half}
    if net.opset >= 20:
        axis = net.constant(np.asarray(net.one_of([1, -2])))
        net.add("DFT", x, length, axis, **given)
    else:
        net.add("DFT", x, *([] if length is None else [length]), axis=1, **given)


def short_fourier(net: Growing) -> None:
    """Transforms of windows of a signal, which step along it."""
    size, step = net.count(2, 8), net.count(1, 4)
    x = net.new_input([net.count(1, 2), size + net.count(0, 9), 1])
    window = net.constant(net.uniform(0.2, 1.0, size))
    onesided = net.count(0, 1)
    steps = net.constant(np.asarray(step))
    net.add("STFT", x, steps, window, net.constant(np.asarray(size)), onesided=onesided)


def window(net: Growing) -> None:
    size = net.constant(np.asarray(net.count(2, 12)))
    name = net.one_of(["HannWindow", "HammingWindow", "BlackmanWindow"])
    values = net.add(name, size, periodic=net.count(0, 1), dtype=np.dtype(np.float32))
    net.add("Mul", values, net.constant(net.normal(), np.float32))


def grid(net: Growing) -> None:
    """Samples of an image between its pixels, at places given or on an affine grid.

    onnx's reference computes them in float32.
    """
    if net.floats != np.float32:
        raise Unstable("the reference is no more exact than the result")
    n, c = net.count(1, 2), net.count(1, 4)
    x = net.new_input([n, c, net.count(2, 7), net.count(2, 7)])
    h, w = net.count(2, 6), net.count(2, 6)
    if net.chance() and net.opset >= 20:
        theta = net.constant(net.uniform(-0.9, 0.9, n, 2, 3))
        places = net.add("AffineGrid", theta, net.ints(n, c, h, w), align_corners=net.count(0, 1))
    else:
        places = net.constant(net.uniform(-1.2, 1.2, n, h, w, 2))
    mode = "linear" if net.opset >= 20 else "bilinear"
    net.add(
        "GridSample", x, places, mode=mode, align_corners=net.count(0, 1),
        padding_mode=net.one_of(["zeros", "border", "reflection"]),
    )  # fmt: skip


def loss(net: Growing) -> None:
    """Of scores for classes, weighted or not, reduced or not."""
    n, c = net.count(1, 5), net.count(2, 6)
    more = [net.count(1, 4)] if net.chance(0.4) else []
    scores = net.new_input([n, c, *more])
    labels = net.constant(net.rng.integers(0, c, (n, *more)))
    weights = [net.constant(net.uniform(0.5, 1.5, c))] if net.chance() else []
    how = net.one_of(["none", "mean", "sum"])
    if net.chance():
        net.add("SoftmaxCrossEntropyLoss", scores, labels, *weights, reduction=how)
    else:
        chances = net.add("LogSoftmax", scores, axis=1)
        net.add("NegativeLogLikelihoodLoss", chances, labels, *weights, reduction=how)


def reversed_parts(net: Growing) -> None:
    x = net.pick(lambda v: v.rank >= 2)
    time = net.count(0, 1)
    lengths = net.rng.integers(1, x.shape[time] + 1, x.shape[1 - time])
    net.add("ReverseSequence", x, net.constant(lengths), time_axis=time, batch_axis=1 - time)


def centre(net: Growing) -> None:
    x = net.pick(lambda v: v.rank > 0)
    sizes = [max(1, extent + net.count(-2, 2)) for extent in x.shape]
    net.add("CenterCropPad", x, net.ints(*sizes))


def filled(net: Growing) -> None:
    """What follows from a shape: repeated numbers, a diagonal, its size, whole numbers in a row."""
    x = net.pick(lambda v: v.rank == 2)
    way = net.count(0, 2)
    if way == 0:
        net.add("Add", x, net.add("EyeLike", x, k=net.count(-1, 1)))
    elif way == 1:
        number = net.add("Cast", net.add("Size", x), to=_code(x.dtype), dtype=x.dtype)
        net.add("Div", x, number)
    else:
        limit = net.add("Squeeze", net.add("Slice", net.add("Shape", x), net.ints(1), net.ints(2)))
        bounds = net.constant(np.asarray(0)), limit, net.constant(np.asarray(1))
        row = net.add("Cast", net.add("Range", *bounds), to=_code(x.dtype), dtype=x.dtype)
        net.add("Mul", x, row)


def small_integers(net: Growing) -> None:
    """A convolution of 8-bit integers, summed in 32 bits, as floats again."""
    kind = net.one_of([np.uint8, np.int8])
    x = net.new_input([1, net.count(1, 3), net.count(3, 6), net.count(3, 6)], kind)
    w = net.rng.integers(-2, 3, (net.count(1, 4), x.shape[1], 3, 3)).astype(np.int8)
    zeros = [net.constant(np.asarray(1, kind))] if net.chance() else []
    made = net.add("ConvInteger", x, net.constant(w), *zeros, pads=[1] * 4)
    net.add("Cast", made, to=1, dtype=np.dtype(np.float32))


def heads(net: Growing) -> None:
    """Attention as one node, with fewer heads of keys or not, causal or masked; turned queries."""
    if net.opset < 23:
        raise Unstable("the operator is newer")
    batch, few, each = net.count(1, 2), net.count(1, 2), net.count(1, 2)
    n, m, d = net.count(1, 6), net.count(1, 6), 2 * net.count(1, 4)
    q = net.new_input([batch, few * each, n, d])
    k, v = net.new_input([batch, few, m, d]), net.new_input([batch, few, m, d])
    if net.chance():
        angles = net.uniform(-3.0, 3.0, 16, d // 2)
        tables = net.constant(np.cos(angles)), net.constant(np.sin(angles))
        places = net.constant(net.rng.integers(0, 16, (batch, n)))
        q = net.add("RotaryEmbedding", q, *tables, places)
    mask = [net.constant(net.normal(n, m))] if net.chance() else []
    net.add("Attention", q, k, v, *mask, is_causal=0 if mask else net.count(0, 1))


def _code(dtype: np.dtype[Any]) -> int:
    return int(helper.np_dtype_to_tensor_dtype(dtype))


FURTHER: dict[Callable[[Growing], None], float] = {
    mean_variance: 0.3, root_mean_square: 0.6, swish: 0.4,
    products_so_far: 0.4, fourier: 0.4, short_fourier: 0.3, window: 0.2, grid: 0.5, loss: 0.5,
    reversed_parts: 0.4, centre: 0.4, filled: 0.6, small_integers: 0.4, heads: 0.6,
}  # fmt: skip
