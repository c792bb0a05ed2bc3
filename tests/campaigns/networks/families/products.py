"""Matrix products, convolutions, pools, resampling and recurrent networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.values import Value

__all__ = ["PRODUCTS", "convolved", "image"]


def matmul(net: Growing) -> None:
    """A product with a constant, a new input or an earlier value, of matrices or vectors."""
    x = net.pick_rank(1, 4)
    inner = x.shape[-1]
    fits = [
        v for v in net.values
        if v.dtype == x.dtype and v.rank == x.rank >= 2 and v.shape[:-2] == x.shape[:-2]
    ]  # fmt: skip
    if fits and net.chance(0.4):
        other = net.one_of(fits)
        turned = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
        if other.shape[-2] == inner:
            net.add("MatMul", x, other)
        elif other.shape[-1] == inner:
            net.add("MatMul", x, net.add("Transpose", other, perm=turned))
        return
    shape = [inner, net.count(1, 17)] if net.chance(0.8) else [inner]
    if len(shape) == 2 and x.rank > 2 and net.chance(0.2):
        shape = [*x.shape[:-2], *shape]
    weights = net.normal(*shape) / np.sqrt(inner)
    net.add("MatMul", x, net.like(x, weights))


def gemm(net: Growing) -> None:
    x = net.pick_rank(2, 2)
    turn_x, turn_w = net.count(0, 1), net.count(0, 1)
    k, n = x.shape[0 if turn_x else 1], net.count(1, 17)
    m = x.shape[1 if turn_x else 0]
    w = net.normal(*((n, k) if turn_w else (k, n))) / np.sqrt(k)
    bias = net.one_of([None, (n,), (1, n), (m, 1), ()])
    operands = [] if bias is None else [net.like(x, net.normal(*bias))]
    scales: dict[str, Any] = {"alpha": 0.75, "beta": 1.5} if net.chance(0.3) else {}
    weights = net.like(x, w)
    net.add("Gemm", x, weights, *operands, transA=turn_x, transB=turn_w, **scales)


def einsum(net: Growing) -> None:
    x = net.pick_rank(2, 3)
    letters = "abc"[: x.rank]
    dropped = net.one_of(letters)
    w = net.normal(x.shape[letters.index(dropped)], net.count(1, 6))
    kept = [letter for letter in letters if letter != dropped] + ["n"]
    net.rng.shuffle(kept)
    equation = f"{letters},{dropped}n->{''.join(kept)}"
    net.add("Einsum", x, net.like(x, w), equation=equation)


def image(net: Growing) -> Value:
    """A float value with a batch, channels and one to three spatial axes."""
    found = [v for v in net.values if v.dtype == net.floats and 3 <= v.rank <= 5]
    if found and net.chance(0.9):
        value: Value = net.one_of(found[-4:])
        return value
    sizes = [net.count(3, 9) for _ in range(net.one_of([1, 2, 2, 2, 3]))]
    return net.new_input([net.count(1, 2), net.one_of([1, 2, 3, 4, 6, 8, 16]), *sizes])


def windows(net: Growing, x: Value, most: int = 3) -> dict[str, Any]:
    """A kernel that fits the spatial axes of *x*, with strides, pads and dilations."""
    spatial = x.shape[2:]
    kernel = [net.count(1, min(most, extent)) for extent in spatial]
    given: dict[str, Any] = {"kernel_shape": kernel}
    if net.chance(0.4):
        given["strides"] = [net.count(1, 3) for _ in spatial]
    if net.chance(0.6):
        given["pads"] = [net.count(0, k - 1) for k in (*kernel, *kernel)]
    elif net.chance(0.2):
        given["auto_pad"] = net.one_of(["SAME_UPPER", "SAME_LOWER", "VALID"])
        given["strides"] = [net.count(1, k) for k in kernel]
        return given
    if net.chance(0.2):
        fitting = [extent // k for extent, k in zip(spatial, kernel, strict=True)]
        given["dilations"] = [net.count(1, max(1, min(2, fit))) for fit in fitting]
    return given


def convolved(net: Growing, x: Value, **given: Any) -> Value:
    """A convolution of *x*: plain, in groups or depthwise."""
    channels, kernel = x.shape[1], given["kernel_shape"]
    groups = net.one_of([g for g in (1, 1, 1, 2, 3, channels) if channels % g == 0])
    made = groups * net.one_of([1, 2, 3, 4, 8])
    shape = (made, channels // groups, *kernel)
    weights = net.constant(net.normal(*shape) / np.sqrt(np.prod(shape[1:])))
    bias = [net.constant(net.normal(made))] if net.chance() else []
    return net.add("Conv", x, weights, *bias, group=groups, **given)


def conv(net: Growing) -> None:
    x = image(net)
    convolved(net, x, **windows(net, x))


def conv_transpose(net: Growing) -> None:
    x = image(net)
    channels, rank = x.shape[1], x.rank - 2
    groups = net.one_of([g for g in (1, 1, 2) if channels % g == 0])
    kernel, strides = ([net.count(1, 3) for _ in range(rank)] for _ in range(2))
    weights = net.normal(channels, net.count(1, 4), *kernel) / np.sqrt(channels)
    given: dict[str, Any] = {"strides": strides, "group": groups, "kernel_shape": kernel}
    if net.chance(0.4):
        given["output_padding"] = [net.count(0, s - 1) for s in strides]
    net.add("ConvTranspose", x, net.constant(weights), **given)


def pool(net: Growing) -> None:
    x, name = image(net), net.one_of(["MaxPool", "AveragePool", "LpPool"])
    given = windows(net, x)
    given.pop("dilations", None)
    if name == "AveragePool" and net.chance():
        given["count_include_pad"] = 1
    net.add(name, x, **given)


def global_pool(net: Growing) -> None:
    net.add(net.one_of(["GlobalAveragePool", "GlobalMaxPool"]), image(net))


def resize(net: Growing) -> None:
    """Nearest or linear, by whole factors."""
    x = image(net)
    sizes = [*x.shape[:2], *(extent * net.count(1, 2) for extent in x.shape[2:])]
    way = net.one_of(
        [
            {"mode": "nearest", "coordinate_transformation_mode": "asymmetric",
             "nearest_mode": "floor"},
            {"mode": "linear", "coordinate_transformation_mode": "half_pixel"},
        ]
    )  # fmt: skip
    net.add("Resize", x, None, None, net.ints(*sizes), **way)


def recurrent(net: Growing) -> None:
    """A GRU, LSTM or RNN over a sequence of rank 3."""
    x = net.pick_rank(3, 3)
    name = net.one_of(["GRU", "LSTM", "RNN"])
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[name]
    hidden, direction = net.count(1, 5), net.one_of(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    w = net.constant(net.normal(ways, gates * hidden, x.shape[2]) / 2, x.dtype)
    r = net.constant(net.normal(ways, gates * hidden, hidden) / 2, x.dtype)
    bias = [net.constant(net.normal(ways, 2 * gates * hidden), x.dtype)] if net.chance() else []
    net.add(name, x, w, r, *bias, hidden_size=hidden, direction=direction)


def bytes_product(net: Growing) -> None:
    """A product of 8-bit integers, summed in 32 bits, as floats again."""
    x = net.new_input([net.count(1, 5), net.count(1, 9)], net.one_of([np.uint8, np.int8]))
    kind = net.one_of([np.uint8, np.int8])
    low = 0 if kind is np.uint8 else -2
    w = net.rng.integers(low, 3, (x.shape[1], net.count(1, 9))).astype(kind)
    zeros = [net.constant(np.asarray(1, t)) for t in (x.dtype, kind)] if net.chance() else []
    made = net.add("MatMulInteger", x, net.constant(w), *zeros)
    net.add("Cast", made, to=1, dtype=np.dtype(np.float32))


PRODUCTS: dict[Callable[[Growing], None], float] = {
    matmul: 3, gemm: 2, einsum: 1, conv: 4, conv_transpose: 1, pool: 2, global_pool: 0.7,
    resize: 0.7, recurrent: 0.4, bytes_product: 0.6,
}  # fmt: skip
