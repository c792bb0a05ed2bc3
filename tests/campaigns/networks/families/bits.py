"""Operators on the bits of integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import helper

from tests.campaigns.networks.growing import Growing

__all__ = ["BITS"]

_UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
_SIGNED = (np.int8, np.int16, np.int32, np.int64)


def shift(net: Growing) -> None:
    x = net.new_input(net.shape(), net.one_of(_UNSIGNED))
    by = net.given(net.rng.integers(0, 4, x.shape[net.count(0, x.rank) :]), x.dtype)
    net.add("BitShift", x, by, direction=net.one_of(["LEFT", "RIGHT"]))


def pairs_of_bits(net: Growing) -> None:
    x = net.new_input(net.shape(), net.one_of([*_UNSIGNED, *_SIGNED]))
    other = net.given(net.rng.integers(0, 8, x.shape[net.count(0, x.rank) :]), x.dtype)
    net.add(net.one_of(["BitwiseAnd", "BitwiseOr", "BitwiseXor"]), x, other)


def turned_bits(net: Growing) -> None:
    net.add("BitwiseNot", net.new_input(net.shape(), net.one_of(_SIGNED)))


def cast_of_bits(net: Growing) -> None:
    """Bits of one type as those of another of the same size, and back."""
    if net.opset < 26:  # which has no BitCast
        return
    one, other = net.one_of([
        (np.uint8, np.int8), (np.int16, np.float16), (np.int32, np.float32), (np.uint32, np.int32),
        (np.int64, np.float64),
    ])  # fmt: skip
    x = net.new_input(net.shape(), one)
    first, second = (helper.np_dtype_to_tensor_dtype(np.dtype(kind)) for kind in (other, one))
    there = net.node("BitCast", [x], to=first)
    net.chain([there, net.node("BitCast", [there.output[0]], to=second)], [x])


BITS: dict[Callable[[Growing], None], float] = {
    shift: 0.3, pairs_of_bits: 0.4, turned_bits: 0.2, cast_of_bits: 0.3
}  # fmt: skip
