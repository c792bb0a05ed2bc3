"""A text recogniser like that of PP-OCRv3 (Li et al., 2022): SVTR-LCNet on lines of any width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from benchmarks.zoo.builder import Builder
from benchmarks.zoo.transformer import layer_norm, self_attention, shape_of

__all__ = ["RecogniserSize", "recogniser"]


@dataclass(frozen=True)
class RecogniserSize:
    """Extents of the network: channels of the first convolution, the transformer, the classes."""

    channels: int = 16
    width: int = 120
    heads: int = 8
    layers: int = 2
    classes: int = 6625


# kernel, channels as a multiple of the first convolution's, stride, squeeze and excitation
BLOCKS = (
    (3, 2, (1, 1), False), (3, 4, (1, 1), False), (3, 4, (1, 1), False), (3, 8, (2, 1), False),
    (3, 8, (1, 1), False), (3, 16, (2, 1), False), *((5, 16, (1, 1), False),) * 5,
    (5, 32, (2, 1), True), (5, 32, (1, 2), True),
)  # fmt: skip
NECK = 8
"""The neck has so many times fewer channels than the backbone."""


def recogniser(seed: int, size: RecogniserSize | None = None) -> onnx.ModelProto:
    """An image ``[1, 3, 48, w]`` to scores of classes at about every eighth column."""
    size = size or RecogniserSize()
    net = Builder("recogniser", seed)
    x = _block(net, net.input("image", (1, 3, 48, "w")), 3, size.channels, 3, stride=2)
    channels = size.channels
    for kernel, times, stride, excited in BLOCKS:
        x = _block(net, x, channels, channels, kernel, group=channels, strides=list(stride))
        x = _excited(net, x, channels) if excited else x
        x = _block(net, x, channels, times * size.channels, 1)
        channels = times * size.channels
    x = net.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = _encoded(net, x, channels, size)
    columns = net.op("Transpose", net.op("Squeeze", x, net.constant([2], np.int64)), perm=[0, 2, 1])
    logits = net.linear(columns, channels // NECK, size.classes)
    return net.model({"logits": (1, "columns", size.classes)}, logits=logits)


def _block(
    net: Builder, x: str, ci: int, co: int, kernel: int, *, activation: str = "HardSwish",
    **how: Any,
) -> str:  # fmt: skip
    """A convolution, its norm and an activation."""
    made = net.batch_norm(net.conv(x, ci, co, (kernel, kernel), bias=False, **how), co)
    if activation == "Swish":
        return net.op("Mul", made, net.op("Sigmoid", made))
    return net.op(activation, made)


def _excited(net: Builder, x: str, channels: int) -> str:
    """Channels scaled by what their means say (squeeze and excitation)."""
    means = net.op("GlobalAveragePool", x)
    fewer = net.op("Relu", net.conv(means, channels, channels // 4, (1, 1)))
    gates = net.conv(fewer, channels // 4, channels, (1, 1), gain=1.0)
    return net.op("Mul", x, net.op("HardSigmoid", gates, alpha=0.2, beta=0.5))


def _encoded(net: Builder, x: str, channels: int, size: RecogniserSize) -> str:
    """The neck: a transformer over all columns, whose result joins what it was given."""
    narrow, width = channels // NECK, size.width
    y = _block(net, x, channels, narrow, 3, activation="Swish")
    y = _block(net, y, narrow, width, 1, activation="Swish")
    flat = net.op("Reshape", y, shape_of(net, y, (0, 1), -1))
    z = net.op("Transpose", flat, perm=[0, 2, 1])
    for _ in range(size.layers):
        z = net.op("Add", z, self_attention(net, layer_norm(net, z, width), 0, -1, width,
                                            size.heads))  # fmt: skip
        wide = net.linear(layer_norm(net, z, width), width, 2 * width)
        z = net.op("Add", z, net.linear(net.op("Mul", wide, net.op("Sigmoid", wide)),
                                        2 * width, width))  # fmt: skip
    z = layer_norm(net, z, width)
    image = net.op("Reshape", z, shape_of(net, y, (0, 2, 3), width))
    z = _block(net, net.op("Transpose", image, perm=[0, 3, 1, 2]), width, channels, 1,
               activation="Swish")  # fmt: skip
    both = net.op("Concat", x, z, axis=1)
    both = _block(net, both, 2 * channels, narrow, 3, activation="Swish")
    return _block(net, both, narrow, narrow, 1, activation="Swish")
