"""ViT-tiny on 224x224 in patches of 16 (Touvron et al., 2021, DeiT-Ti)."""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.zoo.builder import Builder
from benchmarks.zoo.transformer import gelu, layer_norm, self_attention

__all__ = ["vit_tiny"]

PATCHES, WIDTH, HEADS, LAYERS = 196, 192, 3, 12


def vit_tiny(batch: int, seed: int) -> onnx.ModelProto:
    """Images ``[batch, 3, 224, 224]`` to scores of 1000 classes."""
    net = Builder("vit_tiny", seed)
    image = net.input("image", (batch, 3, 224, 224))
    x = net.conv(image, 3, WIDTH, (16, 16), stride=16, gain=1.0, pads=[0] * 4)
    x = net.op("Transpose", net.reshape(x, batch, WIDTH, PATCHES), perm=[0, 2, 1])
    token = net.normal("class.token", (1, 1, WIDTH), 1.0)
    token = net.op("Expand", token, net.constant([batch, 1, WIDTH], np.int64))
    x = net.op("Concat", token, x, axis=1)
    x = net.op("Add", x, net.normal("places", (1, PATCHES + 1, WIDTH), 0.5))
    for _ in range(LAYERS):
        normal = layer_norm(net, x, WIDTH, decomposed=True)
        x = net.op("Add", x, self_attention(net, normal, batch, PATCHES + 1, WIDTH, HEADS))
        wide = net.linear(layer_norm(net, x, WIDTH, decomposed=True), WIDTH, 4 * WIDTH)
        x = net.op("Add", x, net.linear(gelu(net, wide), 4 * WIDTH, WIDTH))
    x = layer_norm(net, x, WIDTH, decomposed=True)
    first = net.op("Gather", x, net.constant(0, np.int64), axis=1)
    return net.model(scores=net.linear(first, WIDTH, 1000))
