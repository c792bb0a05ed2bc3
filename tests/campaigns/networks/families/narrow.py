"""Types of 8 bits and fewer: casts to them and back, and arithmetic on quantized integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from onnx import NodeProto, helper

from tests.campaigns.networks.families.products import windows
from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.values import Value

__all__ = ["NARROW"]

_FLOATS: tuple[tuple[int, Any], ...] = (
    (19, ml_dtypes.float8_e4m3fn), (19, ml_dtypes.float8_e4m3fnuz), (19, ml_dtypes.float8_e5m2),
    (19, ml_dtypes.float8_e5m2fnuz), (23, ml_dtypes.float4_e2m1fn),
)  # fmt: skip
_INTEGERS: tuple[tuple[int, Any], ...] = (
    (21, ml_dtypes.int4), (21, ml_dtypes.uint4), (25, ml_dtypes.int2), (25, ml_dtypes.uint2),
)  # fmt: skip
_SINGLE = np.dtype(np.float32)


def _known(net: Growing, kinds: tuple[tuple[int, Any], ...]) -> list[np.dtype[Any]]:
    return [np.dtype(kind) for since, kind in kinds if net.opset >= since]


def narrow_floats(net: Growing) -> None:
    """Floats of 8 or 4 bits, moved as such or not, and back."""
    kinds = _known(net, _FLOATS)
    if kinds:
        x = net.pick()
        kind = net.one_of(kinds)
        given: dict[str, Any] = {"saturate": net.count(0, 1)} if net.chance() else {}
        if kind == np.dtype(ml_dtypes.float4_e2m1fn):
            given = {}
        _there_and_back(net, net.add("Tanh", x), kind, **given)


def powers_of_two(net: Growing) -> None:
    """Scales of 8 bits, which are exponents only."""
    if net.opset >= 24:
        x = net.add("Exp", net.add("Tanh", net.single()))
        how = net.one_of(["up", "down", "nearest"])
        _there_and_back(net, x, np.dtype(ml_dtypes.float8_e8m0fnu), round_mode=how)


def narrow_integers(net: Growing) -> None:
    """Integers of 4 or 2 bits, from whole floats, and back.

    onnxruntime (1.31) rounds others, which are to be truncated.
    """
    kinds = _known(net, _INTEGERS)
    if kinds:
        kind = net.one_of(kinds)
        info = ml_dtypes.iinfo(kind)
        x = net.add("Sigmoid", net.pick())
        low = float(info.min)
        scaled = net.add("Mul", x, net.like(x, float(info.max) - low))
        shifted = net.add("Add", scaled, net.like(x, low))
        _there_and_back(net, shifted, kind, [net.node("Round", [shifted])])


def _there_and_back(
    net: Growing, x: Value, kind: np.dtype[Any], before: Sequence[NodeProto] = (), **given: Any
) -> None:
    source = before[-1].output[0] if before else x
    there = net.node("Cast", [source], to=helper.np_dtype_to_tensor_dtype(kind), **given)
    nodes = [*before, there]
    if x.rank and net.chance(0.4):
        order = [int(p) for p in net.rng.permutation(x.rank)]
        nodes.append(net.node("Transpose", [there.output[0]], perm=order))
    back = net.node("Cast", [nodes[-1].output[0]], to=helper.np_dtype_to_tensor_dtype(x.dtype))
    net.chain([*nodes, back], [x])


def rounded(net: Growing) -> None:
    """Floats in steps: quantized by tensor, axis or block, and dequantized again."""
    x = net.single(1, 4)
    whole: list[np.dtype[Any]] = [np.dtype(np.uint8), np.dtype(np.int8)]
    if net.opset >= 21:
        whole += [np.dtype(np.uint16), np.dtype(np.int16), *_known(net, _INTEGERS[:2])]
    kind = net.one_of([*whole, *_known(net, _FLOATS)])
    shape, how = _steps(net, x)
    scales = net.constant(net.uniform(0.011, 0.3, *shape), _SINGLE)
    zeros = []
    if kind in whole:
        middle = (int(ml_dtypes.iinfo(kind).max) + int(ml_dtypes.iinfo(kind).min)) // 2
        numbers = net.rng.integers(middle - 1, middle + 2, shape)
        zeros = [net.constant(np.asarray(numbers).astype(kind), kind)]
    else:
        zeros = [net.constant(np.zeros(shape, kind), kind)]
    there = net.node("QuantizeLinear", [x, scales, *zeros], **how)
    back = net.node("DequantizeLinear", [there.output[0], scales, *zeros], **how)
    net.chain([there, back], [x, scales, *zeros])


def _steps(net: Growing, x: Value) -> tuple[list[int], dict[str, Any]]:
    """The shape of the scales, and the attributes that say what each is for."""
    axis = net.count(0, x.rank - 1)
    way = net.count(0, 2)
    if way == 1:
        return [x.shape[axis]], {"axis": axis}
    sizes = [b for b in range(1, x.shape[axis] + 1) if x.shape[axis] % b == 0]
    if way == 2 and net.opset >= 21:
        block = net.one_of(sizes)
        shape = [e // block if n == axis else e for n, e in enumerate(x.shape)]
        return shape, {"axis": axis, "block_size": block}
    return [], {}


def weights(net: Growing) -> None:
    """A product with constants of few bits, which have scales by column or by block."""
    kinds = _known(net, (*_INTEGERS[:2], *_FLOATS))
    if not kinds:
        return
    x, kind = net.single(2, 3), net.one_of(kinds)
    inner, width = x.shape[-1], net.count(1, 9)
    if kind.name.startswith("float"):
        numbers = net.normal(inner, width).astype(np.float32).astype(kind)
    else:
        info = ml_dtypes.iinfo(kind)
        numbers = net.rng.integers(info.min, info.max + 1, (inner, width)).astype(kind)
    held = net.constant(numbers, kind)
    sizes = [b for b in range(1, inner + 1) if inner % b == 0]
    by_block = net.opset >= 21 and net.chance()
    block = net.one_of(sizes)
    scales = net.constant(net.uniform(0.05, 0.3, *([inner // block] if by_block else []), width),
                          _SINGLE)  # fmt: skip
    how = {"axis": 0, "block_size": block} if by_block else {"axis": 1}
    w = net.node("DequantizeLinear", [held, scales], **how)
    net.chain([w, net.node("MatMul", [x, w.output[0]])], [x, held, scales])


def dynamic(net: Growing) -> None:
    """Bytes whose scale follows from the largest and the least element."""
    x = net.single()
    there = net.node("DynamicQuantizeLinear", [x], 3)
    net.chain([there, net.node("DequantizeLinear", list(there.output))], [x])


def quantized_product(net: Growing) -> None:
    kind, other = (net.one_of([np.uint8, np.int8]) for _ in range(2))
    m, k, n = (net.count(1, 9) for _ in range(3))
    columns = [n] if net.chance(0.4) else []
    a, b = _bytes(net, kind, m, k), _bytes(net, other, k, n)
    operands = [
        a, *_scaled(net, 0.017, 3, kind), b, *_scaled(net, 0.023, 1, other, *columns),
        *_scaled(net, 0.31, 7, kind),
    ]  # fmt: skip
    made = net.node("QLinearMatMul", operands)
    _dequantized(net, made, operands)


def quantized_conv(net: Growing) -> None:
    kind, channels = net.one_of([np.uint8, np.int8]), net.count(1, 4)
    x = _bytes(net, kind, net.count(1, 2), channels, net.count(3, 7), net.count(3, 7))
    given = windows(net, x)
    made, groups = net.count(1, 5), 1
    if net.chance(0.3):
        groups, made = channels, channels * net.count(1, 2)
    w = _bytes(net, np.int8, made, channels // groups, *given["kernel_shape"])
    bias = [net.constant(net.rng.integers(-300, 300, made).astype(np.int32))]
    operands = [
        x, *_scaled(net, 0.017, 3, kind), w, *_scaled(net, 0.023, 0, np.int8, made),
        *_scaled(net, 0.27, 7, kind), *(bias if net.chance() else []),
    ]  # fmt: skip
    _dequantized(net, net.node("QLinearConv", operands, group=groups, **given), operands)


def _bytes(net: Growing, kind: Any, *shape: int) -> Value:
    info = np.iinfo(kind)
    return net.given(net.rng.integers(info.min, info.max + 1, shape).astype(kind))


def _scaled(net: Growing, scale: float, zero: int, kind: Any, *shape: int) -> list[Value]:
    """A scale, or one of each column, and a zero point."""
    scales = scale * net.uniform(0.7, 1.3, *shape)
    zeros = np.full(shape, zero, kind)
    return [net.constant(np.asarray(scales), _SINGLE), net.constant(zeros, zeros.dtype)]


def _dequantized(net: Growing, made: Any, operands: list[Value]) -> None:
    scale, zero = (operands[6], operands[7])
    back = net.node("DequantizeLinear", [made.output[0], scale, zero])
    net.chain([made, back], operands)


NARROW: dict[Callable[[Growing], None], float] = {
    narrow_floats: 0.5, powers_of_two: 0.3, narrow_integers: 0.5, rounded: 0.6, weights: 0.5,
    dynamic: 0.3, quantized_product: 0.4, quantized_conv: 0.4,
}  # fmt: skip
