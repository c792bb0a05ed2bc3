"""Groups of nodes that the graph passes look for, in their usual forms and slightly other ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.campaigns.networks.families.products import convolved, image, windows
from tests.campaigns.networks.growing import Growing

__all__ = ["PATTERNS"]


def scaled_conv(net: Growing) -> None:
    """A convolution with scales, a norm and an activation around it."""
    x = image(net)
    y = convolved(net, x, **windows(net, x))
    c = y.shape[1]
    if net.chance():
        stats = [net.uniform(0.5, 1.5, c), net.normal(c), net.normal(c), net.uniform(0.5, 1.5, c)]
        y = net.add("BatchNormalization", y, *map(net.constant, stats))
    else:
        each = (c, *[1] * (y.rank - 2))
        y = net.add("Mul", y, net.constant(net.uniform(0.5, 1.5, *each)))
        y = net.add("Add", y, net.constant(net.normal(*each)))
    net.add(net.one_of(["Relu", "HardSwish", "Sigmoid", "LeakyRelu"]), y)


def residual(net: Growing) -> None:
    x = image(net)
    k = [1 if e < 3 else 3 for e in x.shape[2:]]
    shape = (x.shape[1], x.shape[1], *k)
    weights = net.constant(net.normal(*shape) / np.sqrt(np.prod(shape[1:])))
    y = net.add("Conv", x, weights, pads=[e // 2 for e in (*k, *k)])
    net.add("Relu", net.add("Add", y, x))


def siblings(net: Growing) -> None:
    """Products of one value with several constants, joined or not."""
    x = net.pick_rank(2, 3)
    made = []
    for _ in range(net.count(2, 3)):
        w = net.normal(x.shape[-1], net.one_of([3, 4, 8])) / np.sqrt(x.shape[-1])
        y = net.add("MatMul", x, net.like(x, w))
        made.append(net.add("Relu", y) if net.chance(0.3) else y)
    if net.chance():
        net.add("Concat", *made, axis=-1)


def attention(net: Growing) -> None:
    """Scores of queries and keys, scaled, masked, and their softmax by values."""
    b, h, n, m, d = (
        net.count(1, 2),
        net.count(1, 2),
        net.count(1, 7),
        net.count(1, 7),
        net.count(1, 9),
    )
    q, k, v = net.new_input([b, h, n, d]), net.new_input([b, h, m, d]), net.new_input([b, h, m, d])
    scores = net.add("MatMul", q, net.add("Transpose", k, perm=[0, 1, 3, 2]))
    if net.chance():
        scores = net.add("Div", scores, net.constant(np.sqrt(d)))
    else:
        scores = net.add("Mul", scores, net.constant(1 / np.sqrt(d)))
    if net.chance():
        mask = np.where(net.rng.random((n, m)) < 0.3, -30.0, 0.0)
        scores = net.add("Add", scores, net.constant(mask))
    mixed = net.add("MatMul", net.add("Softmax", scores, axis=-1), v)
    turned = net.add("Transpose", mixed, perm=[0, 2, 1, 3])
    net.add("Reshape", turned, net.ints(b, n, h * d))


def spelled_norm(net: Growing) -> None:
    """A layer or RMS normalization written with reductions."""
    x = net.pick(lambda v: v.rank >= 1 and v.shape[-1] > 1)
    axis = net.ints(-1)
    if net.chance():
        x = net.add("Sub", x, net.add("ReduceMean", x, axis))
    variance = net.add("ReduceMean", net.add("Mul", x, x), axis)
    root = net.add("Sqrt", net.add("Add", variance, net.like(x, np.asarray(1e-3))))
    y = net.add("Div", x, root)
    net.add("Mul", y, net.like(x, net.uniform(0.5, 1.5, x.shape[-1])))


def spelled_gelu(net: Growing) -> None:
    x = net.pick()
    grown = net.add("Erf", net.add("Div", x, net.like(x, np.sqrt(2))))
    y = net.add("Mul", x, net.add("Add", grown, net.like(x, np.asarray(1.0))))
    net.add("Mul", y, net.like(x, np.asarray(0.5)))


def turned_conv(net: Growing) -> None:
    """A convolution between transposes from and to channels last."""
    x = net.pick_rank(4, 4)
    first = net.add("Transpose", x, perm=[0, 3, 1, 2])
    if first.dtype != net.floats:
        return
    y = convolved(net, first, **windows(net, first))
    net.add("Transpose", y, perm=[0, 2, 3, 1])


def shuffle(net: Growing) -> None:
    x = net.pick(lambda v: v.rank == 4 and v.shape[1] % 2 == 0)
    n, c, h, w = x.shape
    parts = net.add("Reshape", x, net.ints(n, 2, c // 2, h, w))
    net.add("Reshape", net.add("Transpose", parts, perm=[0, 2, 1, 3, 4]), net.ints(n, c, h, w))


def gate(net: Growing) -> None:
    """Channels multiplied by what their means decide."""
    x = image(net)
    pooled = net.add("GlobalAveragePool", x)
    weights = net.normal(x.shape[1], x.shape[1], *[1] * (x.rank - 2)) / np.sqrt(x.shape[1])
    net.add("Mul", x, net.add("Sigmoid", net.add("Conv", pooled, net.constant(weights))))


def padded_window(net: Growing) -> None:
    """A pad that a convolution or pool could do itself."""
    x = image(net)
    sizes = [0, 0, *(net.count(0, 2) for _ in x.shape[2:])]
    y = net.add("Pad", x, net.ints(*sizes, *sizes))
    if net.chance():
        convolved(net, y, kernel_shape=[min(3, e) for e in y.shape[2:]])
    else:
        name = net.one_of(["MaxPool", "AveragePool"])
        net.add(name, y, kernel_shape=[min(2, e) for e in y.shape[2:]])


def dequantized(net: Growing) -> None:
    """A product of operands that DequantizeLinear made from 8-bit integers."""
    if net.opset < 19:  # which onnx's reference does not implement
        return
    x = net.new_input([net.count(1, 5), net.count(1, 9)], np.uint8)
    w = net.constant(net.rng.integers(-4, 5, (x.shape[1], net.count(1, 9))).astype(np.int8))
    scales = [net.constant(np.asarray(s, np.float32), np.float32) for s in (0.11, 0.07)]
    zero = net.constant(np.asarray(net.count(0, 3), np.uint8))
    a = net.add("DequantizeLinear", x, scales[0], zero, dtype=np.dtype(np.float32))
    b = net.add("DequantizeLinear", w, scales[1], dtype=np.dtype(np.float32))
    y = net.add("MatMul", a, b)
    if net.chance(0.4):
        step = net.constant(np.asarray(0.093, np.float32), np.float32)
        net.add("QuantizeLinear", y, step, net.constant(np.asarray(60, np.uint8)))


PATTERNS: dict[Callable[[Growing], None], float] = {
    scaled_conv: 1.5, residual: 0.7, siblings: 0.8, attention: 0.7, spelled_norm: 0.7,
    spelled_gelu: 0.5, turned_conv: 0.5, shuffle: 0.4, gate: 0.5, padded_window: 0.6,
    dequantized: 0.6,
}  # fmt: skip
