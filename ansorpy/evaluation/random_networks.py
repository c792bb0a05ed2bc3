"""Random networks of common layers, as a source of tasks that no real network is needed for.

Sizes are those that layers of published networks have, not uniform ones.  Source: One-Shot Tuner
(CC 2022) draws shapes from layers of families of networks, too.  The lists here are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod, sqrt
from typing import Any, TypeVar

import numpy as np
import onnx
from onnx import helper, numpy_helper

__all__ = ["random_network"]

CHANNELS = (3, 8, 16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 256, 320, 384, 512, 640, 768)
SIDES = (7, 8, 10, 13, 14, 16, 20, 26, 28, 32, 40, 52, 56, 64, 80, 112)
WIDTHS = (32, 64, 96, 128, 192, 256, 312, 384, 512, 768, 1024)
TOKENS = (1, 4, 16, 32, 49, 64, 77, 128, 196, 197, 256, 384)
HEADS = (1, 2, 4, 6, 8, 12)
_OPSET, _IR_VERSION = 17, 8
_MOST_WORK = 1 << 28
"""Multiplications of one layer."""

_T = TypeVar("_T")


def random_network(seed: int) -> onnx.ModelProto:
    """A network of a few random layers on images or on sequences; equal seeds give equal ones."""
    rng = np.random.default_rng(seed)
    layers = _Images(rng) if rng.random() < 0.55 else _Sequences(rng)
    for _ in range(int(rng.integers(3, 9))):
        layers.grow()
    return layers.model(f"random{seed}")


class _Layers:
    """A network that grows by one random layer at a time; ``value`` is the last result."""

    def __init__(self, rng: np.random.Generator, shape: Sequence[int]) -> None:
        self.rng = rng
        self.nodes: list[onnx.NodeProto] = []
        self.held: list[onnx.TensorProto] = []
        self.shape = list(shape)
        self.input = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, list(shape))
        self.value = "x"
        self.makers: Sequence[Callable[[], None]] = ()

    def grow(self) -> None:
        """Append a random layer."""
        self.pick(self.makers)()

    def model(self, name: str) -> onnx.ModelProto:
        """The network that ends with the last result."""
        end = helper.make_tensor_value_info(self.value, onnx.TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, name, [self.input], [end], self.held)
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION
        )

    def pick(self, choices: Sequence[_T]) -> _T:
        """One of *choices*."""
        return choices[int(self.rng.integers(len(choices)))]

    def op(self, kind: str, *operands: str, **attributes: Any) -> str:
        """Append a node; returns the name of its result."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(operands), [name], **attributes))
        return name

    def weight(self, *shape: int) -> str:
        """Add a weight that keeps the scale of what it is multiplied with."""
        fan_in = max(prod(shape[1:]), 1)
        values = self.rng.standard_normal(shape, np.float32) / np.float32(sqrt(fan_in))
        return self.hold(values)

    def hold(self, values: np.ndarray[Any, Any]) -> str:
        """Add a constant."""
        name = f"w{len(self.held)}"
        self.held.append(numpy_helper.from_array(values, name))
        return name

    def activation(self) -> None:
        kind = self.pick(("Relu", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "gelu", "silu", "Clip"))
        x = self.value
        if kind == "gelu":
            scaled = self.op("Mul", x, self.hold(np.array([sqrt(0.5)], np.float32)))
            gate = self.op("Add", self.op("Erf", scaled), self.hold(np.array([1.0], np.float32)))
            self.value = self.op("Mul", x, gate)
        elif kind == "silu":
            self.value = self.op("Mul", x, self.op("Sigmoid", x))
        elif kind == "Clip":
            low, high = self.hold(np.array(0, np.float32)), self.hold(np.array(6, np.float32))
            self.value = self.op("Clip", x, low, high)
        else:
            self.value = self.op(kind, x)

    def sometimes_active(self) -> None:
        """An activation with a chance of two thirds."""
        if self.rng.random() < 2 / 3:
            self.activation()


class _Images(_Layers):
    """Layers on images of shape ``[batch, channels, height, width]``."""

    def __init__(self, rng: np.random.Generator) -> None:
        side = int(rng.choice(SIDES))
        width = side if rng.random() < 0.8 else int(rng.choice(SIDES))
        batch = int(rng.choice([1, 1, 1, 1, 2, 4]))
        super().__init__(rng, (batch, int(rng.choice(CHANNELS)), side, width))
        self.makers = (
            self.convolution, self.convolution, self.convolution, self.depthwise, self.depthwise,
            self.transposed, self.pool, self.residual, self.gate, self.scale, self.dense,
        )  # fmt: skip

    def convolution(self) -> None:
        batch, ci, h, w = self.shape
        groups = self.pick((1, 1, 1, 1, 1, 2, 4))
        kernel, stride = self.pick((1, 1, 3, 3, 3, 5, 7)), self.pick((1, 1, 1, 2))
        dilation = self.pick((1, 1, 1, 1, 2)) if kernel == 3 else 1
        if ci % groups:
            groups = 1
        wide = [
            c for c in CHANNELS
            if c % groups == 0
            and batch * h * w * c * ci * kernel**2 <= groups * stride**2 * _MOST_WORK
        ]  # fmt: skip
        co = self.pick(wide or (groups * 8,))
        self._convolved(co, ci // groups, kernel, stride, groups, dilation)

    def depthwise(self) -> None:
        c = self.shape[1]
        self._convolved(c, 1, self.pick((3, 3, 5, 7)), self.pick((1, 1, 2)), c, 1)

    def _convolved(
        self, co: int, ci: int, kernel: int, stride: int, groups: int, dilation: int
    ) -> None:
        pad = dilation * (kernel - 1) // 2
        batch, _, h, w = self.shape
        self.value = self.op(
            "Conv", self.value, self.weight(co, ci, kernel, kernel), self.weight(co),
            kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=groups,
            dilations=[dilation] * 2,
        )  # fmt: skip
        self.shape = [batch, co, -(-h // stride), -(-w // stride)]
        self.sometimes_active()

    def transposed(self) -> None:
        batch, ci, h, w = self.shape
        if max(h, w) > 32 or ci > 512:
            return self.convolution()
        kernel, co = self.pick((2, 4)), self.pick(CHANNELS[:12])
        self.value = self.op(
            "ConvTranspose", self.value, self.weight(ci, co, kernel, kernel), self.weight(co),
            kernel_shape=[kernel] * 2, strides=[2, 2], pads=[(kernel - 2) // 2] * 4,
        )  # fmt: skip
        self.shape = [batch, co, 2 * h, 2 * w]
        return self.sometimes_active()

    def pool(self) -> None:
        batch, c, h, w = self.shape
        if min(h, w) < 4:
            return self.scale()
        kind, kernel = self.pick(("MaxPool", "AveragePool")), self.pick((2, 3))
        self.value = self.op(kind, self.value, kernel_shape=[kernel] * 2, strides=[2, 2])
        self.shape = [batch, c, (h - kernel) // 2 + 1, (w - kernel) // 2 + 1]
        return None

    def residual(self) -> None:
        """Two convolutions, and what they started from added to the result."""
        before, (_, c, h, w) = self.value, self.shape
        if c * c * h * w * 9 > _MOST_WORK:
            return self.depthwise()
        self._convolved(c, c, 3, 1, 1, 1)
        self._convolved(c, c, self.pick((1, 3)), 1, 1, 1)
        self.value = self.op("Add", self.value, before)
        return self.sometimes_active()

    def gate(self) -> None:
        """Squeeze and excitation."""
        c = self.shape[1]
        pooled = self.op("GlobalAveragePool", self.value)
        weights = self.op("Conv", pooled, self.weight(c, c, 1, 1), self.weight(c))
        self.value = self.op("Mul", self.value, self.op("Sigmoid", weights))

    def scale(self) -> None:
        kind = self.pick(("Mul", "Add", "norm"))
        c = self.shape[1]
        if kind == "norm":
            scale, bias = self.weight(c), self.weight(c)
            self.value = self.op("InstanceNormalization", self.value, scale, bias)
        else:
            self.value = self.op(kind, self.value, self.weight(c, 1, 1))
        self.sometimes_active()

    def dense(self) -> None:
        """A classifier on the mean of the image; what follows sees an image of one pixel."""
        batch, c = self.shape[:2]
        wide = self.pick(WIDTHS)
        flat = self.op("Flatten", self.op("GlobalAveragePool", self.value))
        made = self.op("Gemm", flat, self.weight(wide, c), self.weight(wide), transB=1)
        size = self.hold(np.array([batch, wide, 1, 1], np.int64))
        self.value, self.shape = self.op("Reshape", made, size), [batch, wide, 1, 1]
        self.sometimes_active()


class _Sequences(_Layers):
    """Layers on sequences of shape ``[batch, tokens, width]``."""

    def __init__(self, rng: np.random.Generator) -> None:
        batch = int(rng.choice([1, 1, 1, 2, 4]))
        super().__init__(rng, (batch, int(rng.choice(TOKENS)), int(rng.choice(WIDTHS))))
        self.makers = (
            self.dense, self.dense, self.dense, self.norm, self.attention, self.softmax, self.gate,
            self.residual, self.mean,
        )  # fmt: skip

    def dense(self) -> None:
        batch, tokens, width = self.shape
        narrow = [n for n in (*WIDTHS, 4 * width) if batch * tokens * width * n <= _MOST_WORK]
        self._projected(self.pick(narrow or (32,)))
        self.sometimes_active()

    def _projected(self, wide: int) -> None:
        made = self.op("MatMul", self.value, self.weight(self.shape[-1], wide))
        self.value = self.op("Add", made, self.weight(wide))
        self.shape[-1] = wide

    def norm(self) -> None:
        width = self.shape[-1]
        self.value = self.op(
            "LayerNormalization", self.value, self.weight(width), self.weight(width)
        )

    def attention(self) -> None:
        """Scores of queries and keys, their softmax, and what it takes of the values."""
        batch, tokens, width = self.shape
        heads = self.pick([h for h in HEADS if width % h == 0])
        split = self.hold(np.array([batch, tokens, heads, width // heads], np.int64))
        parts = []
        for axes in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
            projected = self.op("MatMul", self.value, self.weight(width, width))
            parts.append(self.op("Transpose", self.op("Reshape", projected, split), perm=axes))
        scores = self.op("MatMul", parts[0], parts[1])
        scaled = self.op("Mul", scores, self.hold(np.array([sqrt(heads / width)], np.float32)))
        mixed = self.op("MatMul", self.op("Softmax", scaled, axis=-1), parts[2])
        joined = self.op("Transpose", mixed, perm=[0, 2, 1, 3])
        self.value = self.op("Reshape", joined, self.hold(np.array(self.shape, np.int64)))

    def softmax(self) -> None:
        self.value = self.op("Softmax", self.value, axis=-1)

    def gate(self) -> None:
        """A gated projection, as in recent decoders."""
        before, width = self.value, self.shape[-1]
        gate = self.op("Sigmoid", self.op("MatMul", before, self.weight(width, width)))
        self.value = self.op("Mul", before, gate)

    def residual(self) -> None:
        before, width = self.value, self.shape[-1]
        self._projected(self.pick(WIDTHS[:8]))
        self.activation()
        self._projected(width)
        self.value = self.op("Add", self.value, before)

    def mean(self) -> None:
        """The mean over all tokens, added to each."""
        pooled = self.op("ReduceMean", self.value, axes=[1], keepdims=1)
        self.value = self.op("Add", self.value, pooled)
