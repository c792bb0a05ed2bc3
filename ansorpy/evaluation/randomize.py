"""Seeded random weights for a model whose own weights are constant, missing or irrelevant.

A network with equal weights computes equal numbers everywhere, so nearly any wrong program would
pass.  Each weight is drawn by its role: convolution and matrix weights from N(0, 2 / fan_in) (He et
al., 2015, so that activations keep their scale), biases and normalization means from N(0, 0.1^2),
normalization scales and variances from U(0.5, 1.5).
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from enum import Enum

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from ansorpy.evaluation.onnx_edit import with_fields

__all__ = ["Role", "random_weights", "weight_roles"]


class Role(Enum):
    """Role of a constant in the operator that reads it."""

    WEIGHT = "weight"
    BIAS = "bias"
    SCALE = "scale"


_ROLES: dict[str, dict[int, Role]] = {
    "Conv": {1: Role.WEIGHT, 2: Role.BIAS},
    "ConvTranspose": {1: Role.WEIGHT, 2: Role.BIAS},
    "Gemm": {0: Role.WEIGHT, 1: Role.WEIGHT, 2: Role.BIAS},
    "MatMul": {0: Role.WEIGHT, 1: Role.WEIGHT},
    "BatchNormalization": {1: Role.SCALE, 2: Role.BIAS, 3: Role.BIAS, 4: Role.SCALE},
    "InstanceNormalization": {1: Role.SCALE, 2: Role.BIAS},
    "LayerNormalization": {1: Role.SCALE, 2: Role.BIAS},
    "Mul": {0: Role.SCALE, 1: Role.SCALE},
    "Div": {1: Role.SCALE},
    "Add": {0: Role.BIAS, 1: Role.BIAS},
    "Sum": {0: Role.BIAS, 1: Role.BIAS},
    "Sub": {0: Role.BIAS, 1: Role.BIAS},
    "PRelu": {1: Role.SCALE},
}

_SOURCES = ("Constant", "ConstantOfShape")

# Operators that only change the shape of a constant, which therefore keeps its role.
_VIEWS = ("Unsqueeze", "Squeeze", "Reshape", "Flatten", "Identity", "Transpose", "Expand")


def random_weights(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """Copy *model*, drawing its floating-point weights at random by their roles.

    Weights may be initializers or come from ``ConstantOfShape`` nodes (as in the ``light`` models
    of the onnx package); both become initializers.  Shape tensors and other integers are kept.
    The same seed gives the same weights on every machine.
    """
    graph = model.graph
    constants = _constants(graph)
    drawn = {}
    for name, (role, fan_in) in sorted(weight_roles(model).items()):
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        values = _draw(rng, role, constants[name].shape, fan_in)
        values = values.astype(constants[name].dtype, copy=False)
        drawn[name] = numpy_helper.from_array(values, name)
    nodes = [n for n in graph.node if n.op_type not in _SOURCES or n.output[0] not in drawn]
    read = {name for n in nodes for name in n.input} | {o.name for o in graph.output}
    kept = [t for t in graph.initializer if t.name not in drawn and t.name in read]
    given = {t.name for t in graph.initializer}
    return with_fields(
        model,
        node=nodes,
        initializer=[*kept, *drawn.values()],
        input=[i for i in graph.input if i.name not in given],
    )


def weight_roles(model: onnx.ModelProto) -> dict[str, tuple[Role, int]]:
    """(role, fan_in), by name, of every floating-point constant an operator reads as a parameter.

    ``fan_in`` is the number of products summed for one output element (1 if there is no sum).
    """
    constants = _constants(model.graph)
    origin = {name: name for name in constants}
    found: dict[str, tuple[Role, int]] = {}
    for node in model.graph.node:
        if node.op_type in _VIEWS and node.input[0] in origin:
            origin[node.output[0]] = origin[node.input[0]]
        for slot, role in _ROLES.get(node.op_type, {}).items():
            name = origin.get(node.input[slot] if slot < len(node.input) else "")
            if name is None or constants[name].size < 2:  # a scalar factor or offset
                continue
            fan_in = _fan_in(node, slot, constants[name].shape) if role is Role.WEIGHT else 1
            found.setdefault(name, (role, fan_in))
    return found


@dataclass(frozen=True)
class _Constant:
    """Shape and type of a constant; its values do not matter."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def _constants(graph: onnx.GraphProto) -> dict[str, _Constant]:
    """The floating-point constants of *graph*: initializers, Constant and ConstantOfShape nodes."""
    tensors = {t.name: t for t in graph.initializer}
    found = {}
    for name, tensor in tensors.items():
        found[name] = _Constant(tuple(tensor.dims), _numpy_type(tensor.data_type))
    for node in graph.node:
        if node.op_type not in _SOURCES:
            continue
        value = next((a.t for a in node.attribute if a.type == onnx.AttributeProto.TENSOR), None)
        dtype = np.dtype(np.float32) if value is None else _numpy_type(value.data_type)
        if node.op_type == "ConstantOfShape" and node.input[0] in tensors:
            dims = numpy_helper.to_array(tensors[node.input[0]])
            found[node.output[0]] = _Constant(tuple(int(d) for d in dims), dtype)
        elif node.op_type == "Constant" and value is not None:
            found[node.output[0]] = _Constant(tuple(value.dims), dtype)
    return {name: c for name, c in found.items() if c.dtype.kind == "f"}


def _numpy_type(data_type: int) -> np.dtype[np.generic]:
    return np.dtype(helper.tensor_dtype_to_np_dtype(data_type))


def _fan_in(node: onnx.NodeProto, slot: int, shape: tuple[int, ...]) -> int:
    if node.op_type in ("Conv", "ConvTranspose"):
        # ConvTranspose stores (C, M / groups, k...): each output sums over C / groups channels.
        group = next((a.i for a in node.attribute if a.name == "group"), 1)
        channels = shape[1] if node.op_type == "Conv" else shape[0] // group
        return int(channels * np.prod(shape[2:], dtype=np.int64))
    if node.op_type == "Gemm":
        flipped = any(a.name == ("transA", "transB")[slot] and a.i for a in node.attribute)
        return shape[1] if flipped != (slot == 0) else shape[0]
    if len(shape) < 2:
        return shape[0] if shape else 1
    return shape[-1] if slot == 0 else shape[-2]


def _draw(
    rng: np.random.Generator, role: Role, shape: tuple[int, ...], fan_in: int
) -> NDArray[np.float32]:
    if role is Role.SCALE:
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)
    deviation = np.float32(np.sqrt(2.0 / fan_in) if role is Role.WEIGHT else 0.1)
    values = rng.standard_normal(shape, dtype=np.float32)
    values *= deviation  # where they are: they may take hundreds of megabytes
    return values
