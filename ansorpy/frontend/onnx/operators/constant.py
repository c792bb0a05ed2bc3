"""Constants, and operators whose results are constant because shapes are static."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto, numpy_helper

from ansorpy.frontend.onnx.context import NodeContext, Unsupported, dtype_of
from ansorpy.frontend.onnx.reader import array_of
from ansorpy.graph.ir import Array
from ansorpy.graph.ops import Cast

__all__ = ["OPERATORS"]


def constant(ctx: NodeContext) -> str:
    """The tensor, number or list of numbers that the node's attribute holds."""
    for name, dtype in (("value_float", np.float32), ("value_floats", np.float32),
                        ("value_int", np.int64), ("value_ints", np.int64)):  # fmt: skip
        value: object = ctx.attr(name, None)
        if value is not None:
            return _add(ctx, np.asarray(value, dtype))
    tensor: TensorProto | None = ctx.attr("value", None)
    if tensor is None:
        raise Unsupported("value", "only tensors and numbers can be constants")
    dtype_of(tensor.data_type)
    return _add(ctx, array_of(tensor))


def constant_of_shape(ctx: NodeContext) -> str:
    """A tensor of one repeated value; its shape must be known."""
    tensor: TensorProto = ctx.attr("value", numpy_helper.from_array(np.zeros(1, np.float32)))
    dtype = dtype_of(tensor.data_type)
    fill = array_of(tensor)
    shape = ctx.constant_shape(ctx.constant_ints(0, "input shape"), dtype)
    return _add(ctx, np.full(shape, fill.reshape(-1)[0], fill.dtype))


def shape(ctx: NodeContext) -> str:
    """The operand's shape (opset 15: a slice of it)."""
    full = ctx.shape()
    return _add(ctx, np.asarray(full[ctx.attr("start", 0) : ctx.attr("end", len(full))], np.int64))


def size(ctx: NodeContext) -> str:
    """The operand's number of elements."""
    return _add(ctx, np.asarray(math.prod(ctx.shape()), np.int64))


def eye_like(ctx: NodeContext) -> str:
    """Ones on a diagonal of a matrix of the operand's shape."""
    ctx.require_rank(0, 2)
    code: int = ctx.attr("dtype", 0)
    dtype = dtype_of(code) if code else ctx.type().dtype
    rows, columns = ctx.constant_shape(ctx.shape(), dtype)
    return _add(ctx, np.eye(rows, columns, ctx.attr("k", 0)).astype(dtype.numpy))


def cast(ctx: NodeContext) -> str:
    """Convert the element type."""
    wanted = dtype_of(ctx.attr("to", 0))
    return ctx.input() if wanted is ctx.type().dtype else ctx.emit(Cast(wanted), [ctx.input()])


def cast_like(ctx: NodeContext) -> str:
    """Convert to the element type of the second operand."""
    wanted = ctx.type(1).dtype
    return ctx.input() if wanted is ctx.type().dtype else ctx.emit(Cast(wanted), [ctx.input()])


def _add(ctx: NodeContext, array: Array) -> str:
    return ctx.builder.add_constant(ctx.node.output[0], array)


OPERATORS = {
    "Cast": cast,
    "CastLike": cast_like,
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
    "EyeLike": eye_like,
    "Shape": shape,
    "Size": size,
}
