"""Writes an ONNX model, node by node, for the operators of an ATen graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np
import onnx
import sympy
import torch
from numpy.typing import NDArray
from onnx import ModelProto, ValueInfoProto, helper, numpy_helper

from ansorpy.frontend.torch.sizes import Size, SizeWriter, Untranslatable

__all__ = ["DTYPES", "Operand", "Value", "Writer", "model_of", "port", "source_of"]

OPSET = 23
"""The version of the operator set that is written: the first with attention."""

DTYPES: Mapping[torch.dtype, np.dtype[Any]] = {
    torch.bool: np.dtype(np.bool_),
    torch.uint8: np.dtype(np.uint8),
    torch.int8: np.dtype(np.int8),
    torch.int16: np.dtype(np.int16),
    torch.int32: np.dtype(np.int32),
    torch.int64: np.dtype(np.int64),
    torch.float16: np.dtype(np.float16),
    torch.bfloat16: np.dtype(ml_dtypes.bfloat16),
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
}
"""The element types of tensors that are compiled."""


class Value(NamedTuple):
    """A tensor of the ATen graph: its name in the ONNX graph, type and shape."""

    name: str
    dtype: torch.dtype
    shape: tuple[Size, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)


Operand: TypeAlias = Value | str | float | int | bool | sympy.Expr
"""An operand as ATen has it (a tensor, a number, a size), or the name of an ONNX value."""


class Writer:
    """The nodes written so far; ``results`` are those that the current operator computes.

    ``sizes`` writes the values of size expressions; ``source`` is the name of that operator's node.
    """

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.sizes = SizeWriter(self.op, self.constant)
        self.results: tuple[Value, ...] = ()
        self.source = ""
        self._count = 0

    @property
    def result(self) -> Value:
        """The first result of the current operator: its type and shape."""
        return self.results[0]

    @property
    def dtype(self) -> torch.dtype:
        return self.result.dtype

    def op(self, kind: str, *inputs: str | Value, **attributes: Any) -> str:
        """The first output of a new node, which both are named after :attr:`source`."""
        return self.op_with_outputs(kind, *inputs, outputs=1, **attributes)[0]

    def op_with_outputs(
        self, kind: str, *inputs: str | Value, outputs: int, **attributes: Any
    ) -> list[str]:
        names = [value.name if isinstance(value, Value) else value for value in inputs]
        made = [self._fresh() for _ in range(outputs)]
        given = {name: value for name, value in attributes.items() if value is not None}
        self.nodes.append(helper.make_node(kind, names, made, name=made[0], **given))
        return made

    def alias(self, value: str, name: str) -> None:
        """Call *value* also *name*."""
        self.nodes.append(helper.make_node("Identity", [value], [name], name=name))

    def _fresh(self) -> str:
        self._count += 1
        return f"{self.source}.{self._count}"

    def constant(self, array: NDArray[Any]) -> str:
        name = self._fresh()
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, values: Sequence[int]) -> str:
        return self.constant(np.asarray(values, np.int64).reshape(len(values)))

    def shape(self, extents: Sequence[Size]) -> str:
        """A vector of int64 with these extents."""
        if all(isinstance(extent, int) for extent in extents):
            return self.ints([int(extent) for extent in extents])
        return self.op("Concat", *(self.sizes.vector(extent) for extent in extents), axis=0)

    def as_type(self, operand: Operand, dtype: torch.dtype) -> str:
        """*operand* converted to *dtype*."""
        if isinstance(operand, str):
            return operand
        if isinstance(operand, Value):
            return operand.name if operand.dtype == dtype else self.cast(operand.name, dtype)
        if isinstance(operand, sympy.Expr):
            number = self.op("Squeeze", self.sizes.number(operand), self.ints([0]))
            return number if dtype == torch.int64 else self.cast(number, dtype)
        if dtype in (torch.int64, torch.int32) and not -(1 << 63) <= operand < 1 << 63:
            raise Untranslatable(f"the number {operand} is no {dtype}")
        return self.constant(np.asarray(operand).astype(DTYPES[dtype]))

    def same_type(self, operand: Operand) -> str:
        """*operand* converted to the type of the result."""
        return self.as_type(operand, self.dtype)

    def cast(self, value: str | Value, dtype: torch.dtype) -> str:
        return self.op("Cast", value, to=helper.np_dtype_to_tensor_dtype(DTYPES[dtype]))

    def reshape(self, value: str | Value, extents: Sequence[Size]) -> str:
        return self.op("Reshape", value, self.shape(extents), allowzero=1)

    def expand(self, value: str | Value, extents: Sequence[Size]) -> str:
        return self.op("Expand", value, self.shape(extents))

    def transpose(self, value: str | Value, perm: Sequence[int]) -> str:
        if list(perm) == list(range(len(perm))):
            return value.name if isinstance(value, Value) else value
        return self.op("Transpose", value, perm=list(perm))

    def slice(self, value: str | Value, axis: int, start: Size, stop: Size, step: int = 1) -> str:
        """The elements ``start, start + step, ..`` before *stop* along *axis*."""
        ends = (self.shape([start]), self.shape([stop]))
        return self.op("Slice", value, *ends, self.ints([axis]), self.ints([step]))


def source_of(name: str) -> str:
    """The node of the ATen graph for which the ONNX node *name* was written."""
    return name.rpartition(".")[0] or name


def port(name: str, dtype: torch.dtype, shape: Sequence[Size]) -> ValueInfoProto:
    """The declaration of an input or output of a model; expressions of sizes are its dimensions."""
    kind = helper.np_dtype_to_tensor_dtype(DTYPES[dtype])
    dims = [extent if isinstance(extent, int) else str(extent) for extent in shape]
    return helper.make_tensor_value_info(name, kind, dims)


def model_of(
    name: str,
    writer: Writer,
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
) -> ModelProto:
    """The model with the nodes of *writer*."""
    graph = helper.make_graph(writer.nodes, name, inputs, outputs, writer.initializers)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10, producer_name="torch"
    )
