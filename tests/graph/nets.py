"""A builder of small ONNX networks with random weights, so that a test reads as the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto

from tests.frontend.models import graph_model, node

__all__ = ["Net"]


class Net:
    """Each method appends nodes and returns the name of the result."""

    def __init__(self, seed: int = 3, opset: int = 17, **inputs: Sequence[int | str]):
        self.rng = np.random.default_rng(seed)
        self.opset = opset
        self.inputs = inputs
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, NDArray[np.generic]] = {}

    def op(self, op_type: str, *operands: str, **attributes: Any) -> str:
        name = f"{op_type.lower()}{len(self.nodes)}"
        self.nodes.append(node(op_type, list(operands), [name], **attributes))
        return name

    def constant(self, array: object, dtype: type = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array, dtype)
        return name

    def normal(self, *shape: int) -> str:
        return self.constant(self.rng.standard_normal(shape))

    def conv(
        self,
        x: str,
        ci: int,
        co: int,
        k: int = 1,
        group: int = 1,
        bias: bool = True,
        **rest: Any,
    ) -> str:
        weight = self.normal(co, ci // group, k, k)
        operands = [x, weight, self.normal(co)] if bias else [x, weight]
        pads = rest.pop("pads", [k // 2] * 4)
        return self.op("Conv", *operands, group=group, pads=pads, **rest)

    def batch_norm(self, x: str, c: int) -> str:
        scale, bias, mean = (self.normal(c) for _ in range(3))
        var = self.constant(self.rng.uniform(0.5, 1.5, c))
        return self.op("BatchNormalization", x, scale, bias, mean, var)

    def relu(self, x: str) -> str:
        return self.op("Relu", x)

    def reshape(self, x: str, *shape: int) -> str:
        return self.op("Reshape", x, self.constant(shape, np.int64))

    def gemm(self, x: str, k: int, n: int) -> str:
        return self.op("Gemm", x, self.normal(n, k), self.normal(n), transB=1)

    def shuffle(self, x: str, c: int, h: int, w: int, groups: int) -> str:
        split = self.reshape(x, 0, groups, c // groups, h, w)
        return self.reshape(self.op("Transpose", split, perm=[0, 2, 1, 3, 4]), 0, c, h, w)

    def model(self, *outputs: str) -> ModelProto:
        return graph_model(self.nodes, self.inputs, outputs, self.constants, self.opset)
