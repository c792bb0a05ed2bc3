"""3D-ResNet-18 on 16 frames of 112x112 (Tran et al., 2018, R3D)."""

from __future__ import annotations

import onnx

from benchmarks.zoo.builder import Builder

__all__ = ["resnet3d_18"]


def resnet3d_18(batch: int, seed: int) -> onnx.ModelProto:
    """Clips ``[batch, 3, 16, 112, 112]`` to scores of 400 classes."""
    net = Builder("resnet3d_18", seed)

    def conv(x: str, ci: int, co: int, k: int, stride: int, gain: float = 2**0.5) -> str:
        made = net.conv(x, ci, co, (k,) * 3, stride=stride, gain=gain, bias=False)
        return net.batch_norm(made, co)

    clip = net.input("clip", (batch, 3, 16, 112, 112))
    stem = net.conv(clip, 3, 64, (3, 7, 7), strides=[1, 2, 2], bias=False)
    x, channels = net.op("Relu", net.batch_norm(stem, 64)), 64
    for co, first in ((64, 1), (128, 2), (256, 2), (512, 2)):
        for stride in (first, 1):
            y = net.op("Relu", conv(x, channels, co, 3, stride))
            y = conv(y, co, co, 3, 1, gain=1.0)
            if stride > 1 or co != channels:
                x = conv(x, channels, co, 1, stride, gain=1.0)
            x, channels = net.op("Relu", net.op("Add", y, x)), co
    x = net.op("Flatten", net.op("GlobalAveragePool", x), axis=1)
    return net.model(scores=net.linear(x, 512, 400))
