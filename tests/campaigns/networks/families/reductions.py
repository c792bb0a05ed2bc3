"""Reductions, norms, softmaxes, places and scans."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.campaigns.networks.families.products import image
from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.values import Unstable, Value

__all__ = ["REDUCTIONS"]


def _sized(net: Growing) -> Value:
    return net.pick(lambda v: v.rank > 0)


def reduce(net: Growing) -> None:
    """Along some axes, all or none, kept or dropped."""
    x = net.pick()
    kinds = [
        "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
        "ReduceLogSumExp", "ReduceSumSquare",
    ]  # fmt: skip
    axes = net.rng.permutation(x.rank)[: net.count(1, max(1, x.rank))]
    negative = x.rank if net.chance(0.3) else 0
    given = [net.ints(*(int(a) - negative for a in axes))] if len(axes) else []
    net.add(net.one_of(kinds), x, *given, keepdims=net.count(0, 1))


def product(net: Growing) -> None:
    x = net.add("Sigmoid", _sized(net))
    net.add("ReduceProd", x, net.ints(net.count(0, x.rank - 1)), keepdims=net.count(0, 1))


def log_sum(net: Growing) -> None:
    x = net.add("Softplus", _sized(net))
    net.add("ReduceLogSum", x, net.ints(net.count(0, x.rank - 1)), keepdims=net.count(0, 1))


def sum_of_integers(net: Growing) -> None:
    x = net.pick_integer()
    if x.rank and x.dtype in (np.int32, np.int64):
        name = net.one_of(["ReduceSum", "ReduceMax", "ReduceMin"])
        net.add(name, x, net.ints(net.count(0, x.rank - 1)), keepdims=net.count(0, 1))


def extreme(net: Growing) -> None:
    x = _sized(net)
    name = net.one_of(["ArgMax", "ArgMin"])
    net.add(name, x, axis=net.count(-x.rank, x.rank - 1), keepdims=net.count(0, 1))


def softmax(net: Growing) -> None:
    x = _sized(net)
    name = net.one_of(["Softmax", "Softmax", "LogSoftmax", "Hardmax"])
    net.add(name, x, axis=net.count(-x.rank, x.rank - 1))


def layer_norm(net: Growing) -> None:
    x = _sized(net)
    axis = net.count(0, x.rank - 1)
    shape = x.shape[axis:]
    given = [net.like(x, net.uniform(0.5, 1.5, *shape))]
    if net.chance():
        given.append(net.like(x, net.normal(*shape)))
    net.add("LayerNormalization", x, *given, axis=axis)


def channel_norm(net: Growing) -> None:
    """Batch, instance or group normalization of an image.

    The elements of each instance differ by as much as they are large.  Otherwise onnxruntime, which
    subtracts the scaled mean from the scaled element, gives nothing but rounding errors.
    """
    x = image(net)
    c = x.shape[1]
    scale, bias = net.constant(net.uniform(0.5, 1.5, c)), net.constant(net.normal(c))
    way = net.count(0, 2)
    spread = x.exact.std(axis=tuple(range(2, x.rank)))
    if way and (spread < 0.1 * np.abs(x.exact).max()).any():
        raise Unstable("the elements of an instance are alike")
    if way == 0:
        mean, var = net.constant(net.normal(c)), net.constant(net.uniform(0.5, 1.5, c))
        net.add("BatchNormalization", x, scale, bias, mean, var)
    elif way == 1:
        net.add("InstanceNormalization", x, scale, bias)
    elif net.opset >= 21:
        groups = net.one_of([g for g in (1, 2, 4, c) if c % g == 0])
        net.add("GroupNormalization", x, scale, bias, num_groups=groups)


def unit_norm(net: Growing) -> None:
    """For p=1, onnx's reference divides by the sum of the elements, not of their sizes."""
    x = _sized(net)
    net.add("LpNormalization", x, axis=net.count(0, x.rank - 1), p=2)


def scan(net: Growing) -> None:
    x = _sized(net)
    axis = net.constant(np.asarray(net.count(-x.rank, x.rank - 1)))
    net.add("CumSum", x, axis, exclusive=net.count(0, 1), reverse=net.count(0, 1))


def top(net: Growing) -> None:
    x = _sized(net)
    axis = net.count(0, x.rank - 1)
    many = net.ints(net.count(1, min(4, x.shape[axis])))
    net.several("TopK", x, many, outputs=2, axis=axis, largest=net.count(0, 1))


def triangle(net: Growing) -> None:
    x = net.pick(lambda v: v.rank >= 2)
    net.add("Trilu", x, net.constant(np.asarray(net.count(-2, 2))), upper=net.count(0, 1))


def one_hot(net: Growing) -> None:
    places = net.new_input(net.shape(1, 2), np.int64)
    ends = net.constant(net.normal(2))
    net.add("OneHot", places, net.constant(np.asarray(6)), ends, axis=net.one_of([-1, 0]))


REDUCTIONS: dict[Callable[[Growing], None], float] = {
    reduce: 4, product: 0.4, log_sum: 0.4, sum_of_integers: 0.5, extreme: 0.7, softmax: 2,
    layer_norm: 1, channel_norm: 1.5, unit_norm: 0.4, scan: 0.6, top: 0.6, triangle: 0.4,
    one_hot: 0.4,
}  # fmt: skip
