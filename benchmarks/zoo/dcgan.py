"""The generator of DCGAN for 64x64 images (Radford et al., 2016)."""

from __future__ import annotations

from math import sqrt

import onnx

from benchmarks.zoo.builder import Builder

__all__ = ["dcgan"]


def dcgan(batch: int, seed: int) -> onnx.ModelProto:
    """Noise ``[batch, 100, 1, 1]`` to images ``[batch, 3, 64, 64]`` between -1 and 1."""
    net = Builder("dcgan", seed)

    def grow(x: str, ci: int, co: int, stride: int, gain: float) -> str:
        # With stride 2, four of the 16 taps contribute to each output.
        taps = 16 // stride**2
        weight = net.normal("up.weight", (ci, co, 4, 4), gain / sqrt(ci * taps))
        pads = [0 if stride == 1 else 1] * 4
        strides = [stride, stride]
        return net.op("ConvTranspose", x, weight, kernel_shape=[4, 4], strides=strides, pads=pads)

    x = net.input("noise", (batch, 100, 1, 1))
    # The input is a single pixel, so one tap contributes to each output of the first layer.
    for ci, co, stride, gain in (
        (100, 512, 1, 4 * sqrt(2)), (512, 256, 2, sqrt(2)), (256, 128, 2, sqrt(2)),
        (128, 64, 2, sqrt(2)),
    ):  # fmt: skip
        x = net.op("Relu", net.batch_norm(grow(x, ci, co, stride, gain), co))
    return net.model(image=net.op("Tanh", grow(x, 64, 3, 2, 1.0)))
