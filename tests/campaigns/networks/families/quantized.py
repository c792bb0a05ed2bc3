"""Quantized operators of com.microsoft, compared with onnxruntime.

Results that are integers are dequantized: one step is allowed where rounding decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.values import Value

__all__ = ["QUANTIZED"]

_SINGLE = np.dtype(np.float32)


def _bytes(net: Growing, kind: Any, *shape: int) -> Value:
    info = np.iinfo(kind)
    return net.given(net.rng.integers(info.min, info.max + 1, shape).astype(kind))


def _scale(net: Growing, low: float, high: float, *shape: int) -> Value:
    return net.constant(net.uniform(low, high, *shape), _SINGLE)


def _zero(net: Growing, number: int, kind: Any) -> Value:
    return net.constant(np.asarray(number, kind))


def _part(net: Growing, kind: Any, *shape: int) -> list[Value]:
    """Integers with their scale and zero point."""
    return [_bytes(net, kind, *shape), _scale(net, 0.011, 0.05), _zero(net, net.count(0, 9), kind)]


def _told(
    net: Growing, name: str, operands: list[Value], step: float, kind: Any, zero: int = 5,
    ends: bool = False, **given: Any,
) -> None:  # fmt: skip
    """The node, whose result has a scale of *step*; it stands first or last in its operands."""
    result = [net.constant(np.asarray(step), _SINGLE), _zero(net, zero, kind)]
    operands = [*result, *operands] if ends else [*operands, *result]
    node = net.node(name, operands, **given)
    net.chain([node, net.node("DequantizeLinear", [node.output[0], *result])], operands)


def pairs(net: Growing) -> None:
    kind, shape = net.one_of([np.uint8, np.int8]), net.shape(1, 3)
    operands = [*_part(net, kind, *shape), *_part(net, kind, *shape[net.count(0, len(shape)) :])]
    name = net.one_of(["com.microsoft.QLinearAdd", "com.microsoft.QLinearMul"])
    _told(net, name, operands, 0.0613, kind)


def functions(net: Growing) -> None:
    """Functions, pools and softmaxes of images of integers."""
    kind = net.one_of([np.uint8, np.int8])
    operands = _part(net, kind, *(net.count(1, 5) for _ in range(4)))
    name, given = net.one_of([
        ("com.microsoft.QLinearSigmoid", {}), ("com.microsoft.QLinearLeakyRelu", {"alpha": 0.3}),
        ("com.microsoft.QLinearGlobalAveragePool", {}),
        ("com.microsoft.QLinearGlobalAveragePool", {"channels_last": 1}),
        ("com.microsoft.QLinearAveragePool", {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]}),
        ("com.microsoft.QLinearSoftmax", {"opset": 13, "axis": -1}),
    ])  # fmt: skip
    if name == "com.microsoft.QLinearSoftmax":
        _told(net, name, operands, 1 / 256, kind, int(np.iinfo(kind).min), **given)
    else:
        _told(net, name, operands, 0.0317, kind, **given)


def joined(net: Growing) -> None:
    rows = net.count(1, 5)
    parts = [_part(net, np.uint8, rows, net.count(1, 5)) for _ in range(net.count(1, 3))]
    operands = [value for part in parts for value in part]
    _told(net, "com.microsoft.QLinearConcat", operands, 0.0519, np.uint8, ends=True, axis=1)


def choices(net: Growing) -> None:
    kind, shape = net.one_of([np.uint8, np.int8]), net.shape(1, 3)
    flags = net.given(net.rng.random(shape) < 0.5)
    operands = [*_part(net, kind, *shape), *_part(net, kind, *shape[net.count(0, len(shape)) :])]
    _told(net, "com.microsoft.QLinearWhere", [flags, *operands], 0.0613, kind)


def products(net: Growing) -> None:
    """Products of integers, or of floats that become such, with scales by column."""
    m, k, n = (net.count(1, 8) for _ in range(3))
    by_column = [n] if net.chance() else []
    b = net.constant(net.rng.integers(-127, 128, (k, n)).astype(np.int8))
    scale = _scale(net, 0.01, 0.05, *by_column)
    bias = [net.constant(net.normal(n), _SINGLE)] if net.chance() else []
    if net.chance():
        a = net.new_input([m, k], _SINGLE)
        net.add("com.microsoft.DynamicQuantizeMatMul", a, b, scale, None, *bias)
    else:
        net.add(
            "com.microsoft.MatMulIntegerToFloat", _bytes(net, np.uint8, m, k), b,
            _scale(net, 0.01, 0.02), scale, _zero(net, 117, np.uint8), None, *bias,
        )  # fmt: skip


def gemm(net: Growing) -> None:
    m, k, n = (net.count(1, 8) for _ in range(3))
    a = _part(net, np.uint8, m, k)
    b = [
        net.constant(net.rng.integers(-127, 128, (n, k)).astype(np.int8)), _scale(net, 0.01, 0.03),
        _zero(net, 0, np.int8),
    ]  # fmt: skip
    c = net.constant(net.rng.integers(-99, 100, n).astype(np.int32))
    if net.chance():
        net.add("com.microsoft.QGemm", *a, *b, c, transB=1)
    else:
        _told(net, "com.microsoft.QGemm", [*a, *b, c], 0.113, np.uint8, 120, transB=1)


def attention(net: Growing) -> None:
    """Attention whose queries, keys and values are products of integers."""
    batch, n, heads, size = net.count(1, 2), net.count(1, 5), net.count(1, 3), net.count(1, 4)
    inner, width = net.count(1, 6), heads * size
    x = _bytes(net, np.uint8, batch, n, inner)
    w = net.constant(net.rng.integers(-127, 128, (inner, 3 * width)).astype(np.int8))
    net.add(
        "com.microsoft.QAttention", x, w, net.constant(net.normal(3 * width), _SINGLE),
        _scale(net, 0.01, 0.02), _scale(net, 0.005, 0.01), None, _zero(net, 120, np.uint8),
        _zero(net, 0, np.int8), num_heads=heads, unidirectional=net.count(0, 1),
    )  # fmt: skip


def words(net: Growing) -> None:
    """The normalised sum of rows of tables of integers."""
    batch, many, width = net.count(1, 3), net.count(1, 5), net.count(2, 6)

    def table(*shape: int) -> Value:
        return net.constant(net.rng.integers(0, 256, shape).astype(np.uint8))

    ids = net.given(net.rng.integers(0, 9, (batch, many)).astype(np.int32))
    tables = [table(9, width), table(many, width), None, table(width), table(width)]
    scales = [None if held is None else _scale(net, 0.011, 0.05) for held in tables]
    zeros = [None if held is None else _zero(net, 117, np.uint8) for held in tables]
    operands = [ids, None, *tables, None, *scales, *zeros]
    net.several("com.microsoft.QEmbedLayerNormalization", *operands, outputs=2, epsilon=1e-3)


def wide_steps(net: Growing) -> None:
    """Integers of 16 bits."""
    x = net.single(1, 3)
    kind = net.one_of([np.int16, np.uint16])
    held = [net.constant(np.asarray(0.0013), _SINGLE), _zero(net, 9_000, kind)]
    there = net.node("com.microsoft.QuantizeLinear", [x, *held])
    back = net.node("com.microsoft.DequantizeLinear", [there.output[0], *held])
    net.chain([there, back], [x, *held])


def blocks(net: Growing) -> None:
    """A product with, or rows of, weights of few bits, with a scale for each block."""
    bits, block = net.one_of([2, 4, 8]), net.one_of([16, 32])
    many = net.count(1, 2)
    if net.chance(0.2):
        n = net.count(1, 6)
        x = net.new_input([net.count(1, 4), many * block], _SINGLE)
        w = net.rng.integers(0, 256, n * many * block // 2).astype(np.uint8)
        net.add(
            "com.microsoft.MatMulBnb4", x, net.constant(w), _scale(net, 0.1, 0.5, n * many),
            K=many * block, N=n, block_size=block, quant_type=net.count(0, 1),
        )  # fmt: skip
        return
    if net.chance():
        inner = many * block - net.one_of([0, 0, 5])
        n = net.count(1, 6)
        x = net.new_input([net.count(1, 4), inner], _SINGLE)
        w = net.rng.integers(0, 256, (n, many, block * bits // 8)).astype(np.uint8)
        scales = net.constant(0.1 * net.normal(n, many), _SINGLE)
        zeros = net.rng.integers(0, 256, (n, -(-many * bits // 8))).astype(np.uint8)
        net.add(
            "com.microsoft.MatMulNBits", x, net.constant(w), scales,
            *([net.constant(zeros)] if net.chance() else []), K=inner, N=n, bits=bits,
            block_size=block,
        )  # fmt: skip
        return
    bits, rows = net.one_of([4, 8]), net.count(1, 9)
    w = net.rng.integers(0, 256, (rows, many * block * bits // 8)).astype(np.uint8)
    places = net.given(net.rng.integers(0, rows, net.shape(1, 2)))
    net.add(
        "com.microsoft.GatherBlockQuantized", net.constant(w), places,
        net.constant(0.1 * net.normal(rows, many), _SINGLE), bits=bits, block_size=block,
        quantize_axis=1, dtype=_SINGLE,
    )  # fmt: skip


def images(net: Growing) -> None:
    """Convolutions and maxima of images of integers, whose channels may be last."""
    kind, last = net.one_of([np.uint8, np.int8]), net.chance()
    channels, size = net.count(1, 4), [net.count(3, 6), net.count(3, 6)]
    shape = [net.count(1, 2), *size, channels] if last else [net.count(1, 2), channels, *size]
    if last and net.chance():
        x = _bytes(net, kind, *shape)
        node = net.node("com.microsoft.NhwcMaxPool", [x], kernel_shape=[2, 3], pads=[1, 1, 0, 1])
        held = [net.constant(np.asarray(0.02), _SINGLE), _zero(net, 3, kind)]
        net.chain([node, net.node("DequantizeLinear", [node.output[0], *held])], [x, *held])
        return
    made = net.count(1, 5)
    weight = net.rng.integers(-120, 121, (made, channels, 3, 3)).astype(np.int8)
    operands = [
        *_part(net, kind, *shape), net.constant(weight), _scale(net, 0.01, 0.02, made),
        net.constant(np.zeros(made, np.int8)),
    ]  # fmt: skip
    _told(net, "com.microsoft.QLinearConv", operands, 0.137, kind,
          channels_last=int(last), pads=[1, 1, 1, 1])  # fmt: skip


QUANTIZED: dict[Callable[[Growing], None], float] = {
    pairs: 0.3, functions: 0.4, joined: 0.2, choices: 0.2, products: 0.4, gemm: 0.3,
    attention: 0.3, words: 0.2, wide_steps: 0.2, blocks: 0.4,
    images: 0.3,
}  # fmt: skip
