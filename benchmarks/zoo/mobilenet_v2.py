"""MobileNet-V2 at 224x224 (Sandler et al., 2018, table 2): inverted residuals, ReLU6."""

from __future__ import annotations

import onnx

from benchmarks.zoo.builder import Builder

__all__ = ["mobilenet_v2"]

# expansion, channels, repetitions, first stride
BLOCKS = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
    (6, 320, 1, 1),
)  # fmt: skip


def mobilenet_v2(batch: int, seed: int) -> onnx.ModelProto:
    """Images ``[batch, 3, 224, 224]`` to scores of 1000 classes."""
    net = Builder("mobilenet_v2", seed)
    low, high = net.constant(0.0, name="low"), net.constant(6.0, name="high")

    def block(x: str, ci: int, co: int, k: int, stride: int = 1, group: int = 1) -> str:
        made = net.conv(x, ci, co, (k, k), stride=stride, group=group, bias=False)
        return net.op("Clip", net.batch_norm(made, co), low, high)

    x, channels = block(net.input("image", (batch, 3, 224, 224)), 3, 32, 3, 2), 32
    for expansion, co, count, first in BLOCKS:
        for stride in (first, *(1,) * (count - 1)):
            wide = channels * expansion
            y = block(x, channels, wide, 1) if expansion > 1 else x
            y = block(y, wide, wide, 3, stride, group=wide)
            y = net.batch_norm(net.conv(y, wide, co, (1, 1), gain=1.0, bias=False), co)
            x = net.op("Add", x, y) if stride == 1 and co == channels else y
            channels = co
    x = net.op("GlobalAveragePool", block(x, channels, 1280, 1))
    return net.model(scores=net.linear(net.op("Flatten", x, axis=1), 1280, 1000))
