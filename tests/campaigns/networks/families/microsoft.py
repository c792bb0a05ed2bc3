"""Operators of com.microsoft that are not quantized: activations, products, norms, attentions ...

They are compared with onnxruntime, whose operators they are, in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.campaigns.networks.families.products import windows
from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.values import Value

__all__ = ["MICROSOFT"]

_SINGLE = np.dtype(np.float32)


def _held(net: Growing, *shape: int, scale: float = 1.0) -> Value:
    return net.constant(scale * net.normal(*shape), _SINGLE)


def gelus(net: Growing) -> None:
    """Functions of one operand, or of the sum of two."""
    x = net.single(1, 4)
    name = net.one_of(["com.microsoft.BiasGelu", "com.microsoft.FastGelu", "com.microsoft.Gelu",
                       "com.microsoft.QuickGelu"])  # fmt: skip
    bias = [_held(net, x.shape[-1])]
    if name == "com.microsoft.QuickGelu":
        net.add(name, x, alpha=float(net.uniform(0.5, 2.0)))
    elif name == "com.microsoft.Gelu":
        net.add(name, x)
    else:
        net.add(name, x, *(bias if name == "com.microsoft.BiasGelu" or net.chance() else []))


def fused_conv(net: Growing) -> None:
    x = net.new_input([net.count(1, 2), net.count(1, 4), net.count(3, 7), net.count(3, 7)], _SINGLE)
    given: dict[str, Any] = windows(net, x)
    given.pop("auto_pad", None)
    name, numbers = net.one_of([
        ("Relu", []), ("Tanh", []), ("Sigmoid", []), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 1.0]),
        ("HardSigmoid", [0.3, 0.4]),
    ])  # fmt: skip
    made = net.count(1, 5)
    w = _held(net, made, x.shape[1], *given["kernel_shape"], scale=0.4)
    more = {"activation_params": numbers} if numbers else {}
    net.add("com.microsoft.FusedConv", x, w, _held(net, made), activation=name, **given, **more)


def fused_products(net: Growing) -> None:
    """Scaled products of operands that are turned, also in their batches."""
    m, k, n = (net.count(1, 7) for _ in range(3))
    if net.chance(0.3):
        turn_a, turn_b = net.count(0, 1), net.count(0, 1)
        a = net.new_input([k, m] if turn_a else [m, k], _SINGLE)
        b = _held(net, *([n, k] if turn_b else [k, n]))
        net.add(
            "com.microsoft.FusedGemm", a, b, _held(net, n), transA=turn_a, transB=turn_b,
            alpha=0.5, activation=net.one_of(["Relu", "Tanh", "Sigmoid"]),
        )  # fmt: skip
        return
    given: dict[str, Any] = {"transA": net.count(0, 1), "transB": net.count(0, 1)}
    batch = [net.count(1, 3)]
    if net.chance(0.3):
        given["transBatchA"] = 1
    rows = [k, m] if given["transA"] else [m, k]
    shape = [rows[0], *batch, rows[1]] if "transBatchA" in given else [*batch, *rows]
    a = net.new_input(shape, _SINGLE)
    b = net.new_input([*batch, *([n, k] if given["transB"] else [k, n])], _SINGLE)
    net.add("com.microsoft.FusedMatMul", a, b, alpha=0.7, **given)


def skips(net: Growing) -> None:
    """Norms of sums, which come out, too."""
    batch, n, width = net.count(1, 3), net.count(1, 7), net.count(2, 9)
    x, skip = (net.new_input([batch, n, width], _SINGLE) for _ in range(2))
    gamma, bias = _held(net, width), _held(net, width) if net.chance() else None
    epsilon = {"epsilon": 1e-3}
    if net.chance():
        operands = [x, skip, gamma, _held(net, width), bias]
        made = net.node("com.microsoft.SkipLayerNormalization", operands, 4, **epsilon)
    else:
        operands = [x, skip, gamma, bias]
        made = net.node("com.microsoft.SkipSimplifiedLayerNormalization", operands, 4, **epsilon)
    made.output[1], made.output[2] = "", ""
    net.chain([made], operands)


def embedded(net: Growing) -> None:
    """Tokens, places and segments, looked up, added and normalised."""
    batch, n, width = net.count(1, 3), net.count(1, 6), net.count(2, 9)

    def words(most: int) -> Value:
        return net.fed(net.rng.integers(0, most, (batch, n)).astype(np.int32))

    segments = net.chance()
    operands = [
        words(11), words(2) if segments else None, _held(net, 11, width), _held(net, 6, width),
        _held(net, 2, width) if segments else None, _held(net, width), _held(net, width),
    ]  # fmt: skip
    net.several("com.microsoft.EmbedLayerNormalization", *operands, outputs=2, epsilon=1e-3)


def attention(net: Growing) -> None:
    """Queries, keys and values from one product, with masks and a cache or not."""
    batch, n, heads, size = net.count(1, 2), net.count(1, 6), net.count(1, 3), net.count(1, 5)
    inner, width = net.count(2, 7), heads * size
    x = net.new_input([batch, n, inner], _SINGLE)
    w, b = _held(net, inner, 3 * width, scale=0.5), _held(net, 3 * width)
    given: dict[str, Any] = {"num_heads": heads, "unidirectional": net.count(0, 1)}
    if net.chance(0.3):
        past = net.new_input([2, batch, heads, net.count(1, 4), size], _SINGLE)
        net.several("com.microsoft.Attention", x, w, b, None, past, outputs=2, **given)
        return
    net.add("com.microsoft.Attention", x, w, b, _mask(net, batch, n), **given)


def _mask(net: Growing, batch: int, n: int) -> Value | None:
    if net.chance(0.3):
        return None
    if net.chance():
        return net.given(net.rng.integers(1, n + 1, batch).astype(np.int32))
    flags = net.rng.integers(0, 2, (batch, n)).astype(np.int32)
    flags[:, 0] = 1
    return net.given(flags)


def many_heads(net: Growing) -> None:
    batch, n, m, heads, size = (net.count(1, k) for k in (2, 6, 6, 3, 5))
    width = heads * size
    q, k, v = (net.new_input([batch, rows, width], _SINGLE) for rows in (n, m, m))
    bias = _held(net, 3 * width) if net.chance() else None
    net.add(
        "com.microsoft.MultiHeadAttention", q, k, v, bias, _mask(net, batch, m), num_heads=heads
    )


def groups(net: Growing) -> None:
    """Heads that share keys, whose rows go on those of a cache."""
    batch, few, each, size = net.count(1, 2), net.count(1, 2), net.count(1, 3), 16
    past = net.one_of([0, 3, 6])
    n = 1 if past else net.count(1, 5)
    heads = few * each
    q, k, v = (net.new_input([batch, n, h * size], _SINGLE) for h in (heads, few, few))
    caches = [
        net.constant(net.normal(batch, few, past, size), _SINGLE) if not past
        else net.new_input([batch, few, past, size], _SINGLE) for _ in range(2)
    ]  # fmt: skip
    last = net.constant(np.full(batch, past + n - 1, np.int32))
    total = net.constant(np.asarray(past + n, np.int32))
    given: dict[str, Any] = {"num_heads": heads, "kv_num_heads": few}
    tables: list[Value] = []
    if net.chance():
        angles = net.uniform(-3.0, 3.0, 16, size // 2)
        tables = [net.constant(f(angles), _SINGLE) for f in (np.cos, np.sin)]
        given |= {"do_rotary": 1, "rotary_interleaved": net.count(0, 1)}
    if net.chance(0.3):
        given["softcap"] = 4.0
    if net.chance(0.3):
        given["local_window_size"] = net.count(1, 4)
    net.several("com.microsoft.GroupQueryAttention", q, k, v, *caches, last, total, *tables,
                outputs=3, **given)  # fmt: skip


def turned(net: Growing) -> None:
    batch, heads, n, half = (net.count(1, k) for k in (2, 3, 5, 4))
    x = net.new_input([batch, n, heads * 2 * half], _SINGLE)
    angles = net.uniform(-3.0, 3.0, 9, half)
    places = net.fed(net.rng.integers(0, 9, (batch, n)))
    tables = [net.constant(f(angles), _SINGLE) for f in (np.cos, np.sin)]
    net.add("com.microsoft.RotaryEmbedding", x, places, *tables, interleaved=net.count(0, 1),
            num_heads=heads, rotary_embedding_dim=0)  # fmt: skip


def matrices(net: Growing) -> None:
    """Distances of rows, and inverses of matrices that are not near to one without."""
    if net.chance():
        columns = net.count(3, 6)
        a, b = (net.new_input([net.count(1, 6), columns], _SINGLE) for _ in range(2))
        metric = net.one_of(["euclidean", "sqeuclidean"])
        net.add("com.microsoft.CDist", a, b, metric=metric)
        return
    n = net.count(1, 5)
    more = [net.count(1, 3)] if net.chance() else []
    matrix = net.uniform(-1.0, 1.0, *more, n, n) + 2.0 * n * np.eye(n)
    net.add("com.microsoft.Inverse", net.given(matrix, _SINGLE))


def experts(net: Growing) -> None:
    """Rows through the few of several networks that a router chooses, with weights of bits or not.

    Those of bits share one scale for each row, as onnxruntime rounds operands of smaller blocks.
    """
    rows, width, inner, many = (net.count(1, k) for k in (20, 4, 4, 5))
    width, inner = 8 * width, 8 * inner
    x, router = net.new_input([rows, width], _SINGLE), net.new_input([rows, many], _SINGLE)
    given: dict[str, Any] = {
        "k": net.count(1, min(many, 3)),
        "activation_type": net.one_of(["relu", "gelu", "silu", "identity"]),
    }
    if net.chance():
        given["normalize_routing_weights"] = net.count(0, 1)
        layers = [(many, inner, width), (many, width, inner)]
        held = [part for shape in layers for part in
                (_held(net, *shape, scale=0.3), _held(net, *shape[:2]))]  # fmt: skip
        net.add("com.microsoft.MoE", x, router, *held, **given)
        return
    bits = net.one_of([4, 8])
    held = []
    for columns, deep in ((inner, width), (width, inner)):
        codes = net.rng.integers(0, 256, (many, columns, deep * bits // 8)).astype(np.uint8)
        scales = net.constant(net.uniform(0.1, 0.3, many, columns) / 2**bits, _SINGLE)
        held += [net.constant(codes), scales, _held(net, many, columns)]
    net.add("com.microsoft.QMoE", x, router, *held, expert_weight_bits=bits, **given)


def crops(net: Growing) -> None:
    """Regions of images, each brought to the same size."""
    shape = [net.count(1, 2), net.count(1, 3), net.count(2, 7), net.count(2, 7)]
    x, many = net.new_input(shape, _SINGLE), net.count(1, 4)
    rois = net.given(net.uniform(-0.2, 1.2, many, 4), _SINGLE)
    images = net.given(net.rng.integers(0, shape[0], many).astype(np.int32))
    size = net.constant(np.asarray([net.count(1, 5), net.count(1, 5)], np.int32))
    mode = net.one_of(["bilinear", "nearest"])
    net.add("com.microsoft.CropAndResize", x, rois, images, size, mode=mode,
            extrapolation_value=0.25)  # fmt: skip


def moved(net: Growing) -> None:
    """Axes that are inserted, windows along an axis, and scores of tokens that would repeat."""
    name = net.one_of(["ExpandDims", "UnfoldTensor", "NGramRepeatBlock"])
    if name == "NGramRepeatBlock":
        batch, length, tokens = net.count(1, 3), net.count(3, 9), net.count(2, 6)
        ids = net.given(net.rng.integers(0, tokens, (batch, length)))
        scores = net.new_input([batch, tokens], _SINGLE)
        least = net.constant(np.asarray(-9.0), _SINGLE)  # results must be finite
        name, n = "com.microsoft.NGramRepeatBlock", net.count(1, 3)
        node = net.node(name, [ids, scores], ngram_size=n)
        net.chain([node, net.node("Max", [node.output[0], least])], [ids, scores, least])
        return
    x = net.single(1, 4)
    if name == "ExpandDims":
        axis = net.constant(np.asarray(net.count(-x.rank - 1, x.rank), np.int32))
        net.add("com.microsoft.ExpandDims", x, axis)
        return
    dim = net.count(0, x.rank - 1)
    size = net.count(1, x.shape[dim])
    net.add("com.microsoft.UnfoldTensor", x, dim=dim, size=size, step=net.count(1, 3))


MICROSOFT: dict[Callable[[Growing], None], float] = {
    gelus: 0.5, fused_conv: 0.4, fused_products: 0.4, skips: 0.3, embedded: 0.3,
    attention: 0.4, many_heads: 0.4, groups: 0.4, turned: 0.3, matrices: 0.2,
    experts: 0.4, crops: 0.2, moved: 0.3,
}  # fmt: skip
