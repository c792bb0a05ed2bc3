"""Values of narrow element types (float8, int4 ...): graph values that hold their codes.

Ports and large constants keep the bytes that ONNX stores; everything else has one element a byte.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from onnx import NodeProto, TensorProto

from ansorpy.frontend.onnx.context import NodeContext, element_type_of
from ansorpy.frontend.onnx.reader import array_of
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.emits import Emits
from ansorpy.graph.ir import Array, GraphBuilder, NarrowPort, Output
from ansorpy.graph.ops import Decode, Encode, Pack, Shape, TensorType, Unpack, Wrap
from ansorpy.graph.ops.narrow.conversions import packed_shape
from ansorpy.ir.dtypes import DType
from ansorpy.ir.narrow import ElementType, Narrow, packed

__all__ = [
    "CARRIES", "READS", "SMALL", "add_constant", "add_input", "constant_array", "kinds_of",
    "narrow_array", "narrowed", "numbers", "output_of", "refused",
]  # fmt: skip

SMALL = 1 << 10
"""Constants of up to so many elements are expanded when the model is compiled."""

CARRIES = frozenset({
    "Concat", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Pad",
    "Reshape", "ScatterElements", "ScatterND", "Slice", "Split", "Squeeze", "Tile", "Transpose",
    "Unsqueeze",
})  # fmt: skip
"""Operators whose results have the type of their first operand, which they only move."""
READS = frozenset({
    "BitCast", "Cast", "CastLike", "ConstantOfShape", "DequantizeLinear", "QuantizeLinear", "Shape",
    "Size", "com.microsoft.GatherBlockQuantized",
})  # fmt: skip
"""Other operators that take narrow operands."""


def _narrow_of(code: int) -> Narrow | None:
    """The narrow type with the given ONNX type code; None for other types."""
    try:
        found = element_type_of(code)
    except Unsupported:
        return None
    return found if isinstance(found, Narrow) else None


def narrow_array(node: NodeProto) -> Array | None:
    """The value of a ``Constant`` node of a narrow type; None for any other node."""
    if node.op_type != "Constant":
        return None
    tensors: list[TensorProto] = [a.t for a in node.attribute if a.name == "value"]
    narrow = [array_of(t) for t in tensors if _narrow_of(t.data_type) is not None]
    return narrow[0] if narrow else None


def add_input(builder: GraphBuilder, name: str, kind: Narrow, shape: Shape) -> str:
    """Add an input of a narrow type; returns the value of its elements."""
    port = builder.add_input(name, TensorType(packed_shape(shape, kind), DType.UINT8))
    builder.ports[name] = NarrowPort(kind, shape)
    value = port
    if 0 in shape:
        value = builder.add_empty(name, TensorType(shape, kind.held))
    elif kind.in_a_byte > 1:
        value = builder.emit(Unpack(kind, shape), [port], f"{name}.elements")
    builder.narrow[value] = kind
    return value


def add_constant(builder: GraphBuilder, name: str, array: Array) -> str:
    """Add a constant of a narrow type; returns the value of its elements."""
    kind = Narrow(array.dtype.name)
    if kind.in_a_byte == 1 or array.size <= SMALL:
        value = builder.add_constant(name, _elements(array, kind))
    else:
        stored = packed(array, kind).reshape(packed_shape(array.shape, kind))
        held = builder.add_constant(f"{name}.packed", stored)
        value = builder.emit(Unpack(kind, array.shape), [held], name)
    builder.narrow[value] = kind
    return value


def _elements(array: Array, kind: Narrow) -> Array:
    """The codes of floats, or the values of integers."""
    if kind.is_float:
        return np.ascontiguousarray(array).view(np.uint8).reshape(array.shape)
    return array.astype(kind.held.numpy)


def constant_array(builder: GraphBuilder, value: str) -> Array:
    """The constant *value*, of a narrow type if it is one."""
    array = builder.constants[value]
    kind = builder.narrow.get(value)
    if kind is None or not kind.is_float:
        return array if kind is None else array.astype(kind.numpy)
    return np.ascontiguousarray(array).view(kind.numpy).reshape(array.shape)


def output_of(builder: GraphBuilder, name: str, value: str) -> Output:
    """The output *name*, whose elements are *value*: packed if it has a narrow type."""
    kind = builder.narrow.get(value)
    if kind is None:
        return Output(name, value)
    port = NarrowPort(kind, builder.types[value].shape)
    packs = kind.in_a_byte > 1
    held = builder.emit(Pack(kind), [value], f"{name}.bytes") if packs else value
    return Output(name, held, port=port)


def kinds_of(builder: GraphBuilder, values: Iterable[str]) -> dict[str, Narrow]:
    """The types of those *values* that have narrow ones."""
    return {value: builder.narrow[value] for value in values if value in builder.narrow}


def numbers(ctx: NodeContext, value: str) -> str:
    """*value* as numbers: itself, unless it holds the codes of floats."""
    kind = ctx.builder.narrow.get(value)
    return ctx.emit(Decode(kind), [value]) if kind is not None and kind.is_float else value


def narrowed(
    ctx: Emits, value: str, kind: Narrow, *, saturate: bool = True, rounding: str = "up"
) -> str:
    """The numbers *value* converted to a narrow type; what a float cannot hold may *saturate*."""
    dtype = ctx.builder.types[value].dtype
    if not kind.is_float:
        made = ctx.emit(Wrap(kind), [value])
    else:
        exact = DType.FLOAT32 if dtype.bits <= 16 else DType.FLOAT64
        real = value if dtype.is_float else ctx.cast(value, exact)
        made = ctx.emit(Encode(kind, saturate, rounding), [real])
    ctx.builder.narrow[made] = kind
    return made


def refused(kind: ElementType) -> Unsupported:
    """The reason why values of type *kind* cannot be operands of an operator."""
    return Unsupported(f"element type {kind.value}", "convert them by a Cast or DequantizeLinear")
