"""Write an ONNX network with seeded random weights, node by node."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from math import prod, sqrt
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

__all__ = ["Builder"]

OPSET, IR_VERSION = 17, 8
FLOAT = onnx.TensorProto.FLOAT
BIAS = 0.1
"""Standard deviation of biases, offsets and batch norm means."""


class Builder:
    """Each method appends nodes or weights and returns the name of the result.

    A weight is drawn from its name and the network's seed.  Matrix weights have standard deviation
    ``gain / sqrt(fan_in)``: a gain of 1 preserves the scale of the input; the square root of 2
    compensates for the half that a ReLU sets to zero (He et al., 2015).
    """

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.seed = seed
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._held: list[onnx.TensorProto] = []
        self._count: dict[str, int] = {}

    def input(self, name: str, shape: Sequence[int | str], dtype: type = np.float32) -> str:
        """Add an input; the texts in its *shape* name dynamic dimensions."""
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self._inputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        return name

    def op(self, op_type: str, *operands: str, **attributes: Any) -> str:
        """Append a node with one output."""
        return self.ops(op_type, 1, *operands, **attributes)[0]

    def ops(self, op_type: str, outputs: int, *operands: str, **attributes: Any) -> list[str]:
        """Append a node with several outputs."""
        names = [self._fresh(op_type.lower()) for _ in range(outputs)]
        self._nodes.append(helper.make_node(op_type, list(operands), names, **attributes))
        return names

    def constant(self, values: object, dtype: type = np.float32, name: str = "constant") -> str:
        """Add a constant with the given values."""
        return self._hold(self._fresh(name), np.asarray(values, dtype))

    def normal(self, name: str, shape: Sequence[int], std: float) -> str:
        """Add a weight of independent normal numbers."""
        name = self._fresh(name)
        values = self._rng(name).standard_normal(tuple(shape), np.float32) * np.float32(std)
        return self._hold(name, values)

    def bias(self, name: str, *shape: int) -> str:
        return self.normal(name, shape, BIAS)

    def scale(self, name: str, *shape: int) -> str:
        """Add positive factors near 1."""
        name = self._fresh(name)
        return self._hold(name, self._rng(name).uniform(0.5, 1.5, shape).astype("f4"))

    def linear(self, x: str, size: int, out: int, *, bias: bool = True, gain: float = 1.0) -> str:
        """Append ``x @ w + b`` along the last axis."""
        weight = self.normal("linear.weight", (size, out), gain / sqrt(size))
        product = self.op("MatMul", x, weight)
        return self.op("Add", product, self.bias("linear.bias", out)) if bias else product

    def conv(
        self, x: str, ci: int, co: int, kernel: Sequence[int], *, group: int = 1, stride: int = 1,
        gain: float = sqrt(2.0), bias: bool = True, **attributes: Any,
    ) -> str:  # fmt: skip
        """Append a convolution whose padding preserves the size at stride 1."""
        rank = len(kernel)
        fan_in = ci // group * prod(kernel)
        weight = self.normal("conv.weight", (co, ci // group, *kernel), gain / sqrt(fan_in))
        operands = [x, weight, self.bias("conv.bias", co)] if bias else [x, weight]
        attributes.setdefault("pads", [k // 2 for k in kernel] * 2)
        attributes.setdefault("strides", [stride] * rank)
        return self.op("Conv", *operands, group=group, kernel_shape=list(kernel), **attributes)

    def batch_norm(self, x: str, channels: int) -> str:
        parts = [self.scale("bn.scale", channels), self.bias("bn.bias", channels)]
        parts += [self.bias("bn.mean", channels), self.scale("bn.var", channels)]
        return self.op("BatchNormalization", x, *parts, epsilon=1e-5)

    def reshape(self, x: str, *shape: int) -> str:
        return self.op("Reshape", x, self.constant(shape, np.int64, "shape"))

    def model(
        self, shapes: Mapping[str, Sequence[int | str]] | None = None, /, **outputs: str
    ) -> onnx.ModelProto:
        """The checked model; *outputs* names its results, *shapes* declares those of some."""
        declared = {name: list(shape) for name, shape in (shapes or {}).items()}
        named = {value: name for name, value in outputs.items()}
        for node in self._nodes:
            for names in (node.input, node.output):
                names[:] = [named.get(name, name) for name in names]
        kinds = [helper.make_tensor_value_info(name, FLOAT, declared.get(name)) for name in outputs]
        graph = helper.make_graph(self._nodes, self.name, self._inputs, kinds, self._held)
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION)
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        onnx.checker.check_model(inferred)
        return inferred

    def _rng(self, name: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])

    def _hold(self, name: str, values: NDArray[Any]) -> str:
        self._held.append(numpy_helper.from_array(values, name))
        return name

    def _fresh(self, name: str) -> str:
        count = self._count.get(name, 0)
        self._count[name] = count + 1
        return f"{name}.{count}"
