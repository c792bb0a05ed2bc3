"""Random networks equal onnxruntime: layouts, fusion, folding and the arena in combination."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from onnx import ModelProto

from tests.budget import some
from tests.graph.executor import assert_same_as_onnxruntime
from tests.graph.nets import Net


@dataclass(frozen=True)
class Image:
    """A value of shape ``[batch, c, h, w]``."""

    name: str
    c: int
    h: int
    w: int


class RandomNetwork:
    """Applies random operators to random earlier values.

    Numbers of channels are odd or, with *block* 16, such that parts of values can be views.
    """

    def __init__(self, seed: int, steps: int = 14, block: int = 1, batch: int | None = None):
        self.rng = np.random.default_rng(seed)
        self.block = block
        self.batch = int(self.rng.integers(1, 3)) if batch is None else batch
        c, h, w = (int(v) for v in self.rng.integers(2, 9, 3))
        self.net = Net(seed=seed, x=(self.batch, c, h, w))
        self.images = [Image("x", c, h, w)]
        makers: list[Callable[[Image], Image | None]] = [
            self.conv, self.conv, self.depthwise, self.batch_norm, self.activation, self.add,
            self.concat, self.pool, self.gate, self.shuffle, self.scale, self.cut,
        ]  # fmt: skip
        for _ in range(steps):
            recent = self.images[-4:]
            image = recent[int(self.rng.integers(len(recent)))]
            made = makers[int(self.rng.integers(len(makers)))](image)
            if made is not None:
                self.images.append(made)

    def model(self) -> ModelProto:
        a, b = self.images[-1], self.images[int(self.rng.integers(len(self.images)))]
        flat = self.net.op("Flatten", a.name)
        head = self.net.gemm(flat, a.c * a.h * a.w, 5)
        return self.net.model(head, self.net.op("Neg", b.name))

    def chance(self) -> bool:
        return bool(self.rng.integers(2))

    def conv(self, x: Image) -> Image:
        k, stride = int(self.rng.choice([1, 1, 3])), int(self.rng.choice([1, 1, 2]))
        groups = int(self.rng.choice([g for g in (1, 2, 3) if x.c % g == 0]))
        co = groups * self.block * int(self.rng.integers(1, 6 if self.block == 1 else 3))
        name = self.net.conv(x.name, x.c, co, k, groups, self.chance(), strides=[stride] * 2)
        return Image(name, co, -(-x.h // stride), -(-x.w // stride))

    def depthwise(self, x: Image) -> Image:
        return Image(self.net.conv(x.name, x.c, x.c, 3, x.c), x.c, x.h, x.w)

    def batch_norm(self, x: Image) -> Image:
        return Image(self.net.batch_norm(x.name, x.c), x.c, x.h, x.w)

    def activation(self, x: Image) -> Image:
        kind = str(self.rng.choice(["Relu", "Sigmoid", "LeakyRelu", "Tanh"]))
        return Image(self.net.op(kind, x.name), x.c, x.h, x.w)

    def add(self, x: Image) -> Image | None:
        others = [o for o in self.images if (o.c, o.h, o.w) == (x.c, x.h, x.w) and o != x]
        if not others:
            return None
        other = others[int(self.rng.integers(len(others)))]
        return Image(self.net.op("Add", other.name, x.name), x.c, x.h, x.w)

    def concat(self, x: Image) -> Image | None:
        other = [o for o in self.images if (o.h, o.w) == (x.h, x.w)][-1]
        if x.c + other.c > 40 * self.block:
            return None
        name = self.net.op("Concat", x.name, other.name, axis=1)
        return Image(name, x.c + other.c, x.h, x.w)

    def pool(self, x: Image) -> Image | None:
        if min(x.h, x.w) < 3:
            return None
        kind = str(self.rng.choice(["MaxPool", "AveragePool"]))
        pad, stride = int(self.rng.integers(2)), int(self.rng.integers(1, 3))
        name = self.net.op(kind, x.name, kernel_shape=[3, 3], pads=[pad] * 4, strides=[stride] * 2)
        return Image(
            name, x.c, (x.h + 2 * pad - 3) // stride + 1, (x.w + 2 * pad - 3) // stride + 1
        )

    def gate(self, x: Image) -> Image:
        pooled = self.net.conv(self.net.op("GlobalAveragePool", x.name), x.c, x.c)
        name = self.net.op("Mul", x.name, self.net.op("Sigmoid", pooled))
        return Image(name, x.c, x.h, x.w)

    def shuffle(self, x: Image) -> Image | None:
        if x.c % 2:
            return None
        return Image(self.net.shuffle(x.name, x.c, x.h, x.w, 2), x.c, x.h, x.w)

    def scale(self, x: Image) -> Image:
        shape = (x.c, 1, 1) if self.chance() else (x.h, 1) if self.chance() else ()
        kind = str(self.rng.choice(["Mul", "Add", "Sub"]))
        return Image(self.net.op(kind, x.name, self.net.normal(*shape)), x.c, x.h, x.w)

    def cut(self, x: Image) -> Image | None:
        if x.c <= 2 * self.block:
            return None
        bounds = (self.net.constant(v, np.int64) for v in ([self.block], [x.c], [1]))
        return Image(self.net.op("Slice", x.name, *bounds), x.c - self.block, x.h, x.w)


@pytest.mark.parametrize("seed", some(range(100, 140)))
def test_a_random_network_of_parts_equals_onnxruntime(seed: int) -> None:
    model = RandomNetwork(seed, block=16).model()
    assert_same_as_onnxruntime(model, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", some(range(60)))
def test_a_random_network_equals_onnxruntime(seed: int) -> None:
    assert_same_as_onnxruntime(RandomNetwork(seed).model(), np.random.default_rng(seed))
