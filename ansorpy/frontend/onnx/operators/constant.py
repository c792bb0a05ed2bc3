"""Constants, and operators whose results follow from shapes."""

from __future__ import annotations

import math

import numpy as np
from onnx import SparseTensorProto, TensorProto, numpy_helper

from ansorpy.frontend.onnx.context import NodeContext, dtype_of
from ansorpy.frontend.onnx.ratio import Ratio
from ansorpy.frontend.onnx.reader import array_of
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ir import Array
from ansorpy.graph.ops import Cast, Expand, Fn, Iota, Shape
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent, dims_of, extreme, prod_of
from ansorpy.ir.symbols import SizeOp

__all__ = ["OPERATORS"]


def constant(ctx: NodeContext) -> str:
    """The tensor, number or list of numbers that the node's attribute holds."""
    for name, dtype in (("value_float", np.float32), ("value_floats", np.float32),
                        ("value_int", np.int64), ("value_ints", np.int64)):  # fmt: skip
        value: object = ctx.attr(name, None)
        if value is not None:
            return _add(ctx, np.asarray(value, dtype))
    sparse: SparseTensorProto | None = ctx.attr("sparse_value", None)
    if sparse is not None:
        dtype_of(sparse.values.data_type)
        return _add(ctx, array_of(sparse))
    tensor: TensorProto | None = ctx.attr("value", None)
    if tensor is None:
        raise Unsupported("value", "only tensors and numbers can be constants")
    dtype_of(tensor.data_type)
    return _add(ctx, array_of(tensor))


def constant_of_shape(ctx: NodeContext) -> str:
    """A tensor of one repeated value; its shape must follow from sizes."""
    tensor: TensorProto = ctx.attr("value", numpy_helper.from_array(np.zeros(1, np.float32)))
    dtype = dtype_of(tensor.data_type)
    fill = array_of(tensor)
    shape = ctx.constant_shape(ctx.extents(0, "input shape"), dtype)
    if dims_of(shape):
        return _filled(ctx, shape, fill.reshape(-1)[:1])
    return _add(ctx, np.full(shape, fill.reshape(-1)[0], fill.dtype))


def _filled(ctx: NodeContext, shape: Shape, fill: Array) -> str:
    """The one element *fill*, repeated to a *shape* that depends on dimensions."""
    one = ctx.builder.share_constant(f"{ctx.node.output[0]}.const", fill.reshape((1,) * len(shape)))
    return ctx.emit(Expand(shape), [one])


def shape(ctx: NodeContext) -> str:
    """The operand's shape (opset 15: a slice of it)."""
    full = ctx.shape()
    part = full[ctx.attr("start", 0) : ctx.attr("end", len(full))]
    return ctx.from_sizes(np.asarray(part, object))


def size(ctx: NodeContext) -> str:
    """The operand's number of elements."""
    return ctx.from_sizes(np.asarray(prod_of(ctx.shape()), object))


def range_(ctx: NodeContext) -> str:
    """``start``, ``start + delta``, .. below ``limit``.

    All three follow from sizes, or the user says how many numbers there are at most.
    """
    dtype, most_rows = ctx.type().dtype, ctx.most_rows()
    if most_rows is not None:
        return _counted_range(ctx, most_rows)
    names = ("start", "limit", "delta")
    if any(ctx.operand(n) in ctx.known for n in range(3)):
        start, limit, delta = (_whole(ctx, n, name) for n, name in enumerate(names))
        return ctx.emit(Iota((_steps(ctx, start, limit, delta),), start, delta, dtype), ())
    bounds = [_end(ctx, n, name).reshape(()) for n, name in enumerate(names)]
    if bounds[2] == 0:
        raise Unsupported("delta=0", "give another one")
    count = math.ceil((float(bounds[1]) - float(bounds[0])) / float(bounds[2]))
    ctx.constant_shape((max(count, 0),), dtype)
    return _add(ctx, np.arange(*(bound.item() for bound in bounds)).astype(dtype.numpy))


def _end(ctx: NodeContext, index: int, what: str) -> Array:
    """The constant operand *index* of a range, whose result may have a bound instead."""
    found = ctx.builder.constants.get(ctx.input(index))
    if found is None:
        raise ctx.unknown(what, ctx.input(index), ctx.node.output[0])
    return found


def _counted_range(ctx: NodeContext, most_rows: int) -> str:
    """A range of at most so many numbers, which a run counts."""
    dtype = ctx.type().dtype
    start, limit, delta = (ctx.reshape(ctx.input(n), ()) for n in range(3))
    way = ctx.cast(ctx.apply(Fn.SUB, limit, start), DType.FLOAT64)
    steps = ctx.apply(Fn.CEIL, ctx.apply(Fn.DIV, way, ctx.cast(delta, DType.FLOAT64)))
    for fn, end in ((Fn.MAX, 0.0), (Fn.MIN, most_rows + 1.0)):
        steps = ctx.apply(fn, steps, ctx.literal(end, DType.FLOAT64))
    total = ctx.builder.emit(Cast(DType.INT64), [steps], f"{ctx.node.output[0]}.count")
    places = ctx.cast(ctx.places(ctx.builder.counted(total, most_rows)), dtype)
    return ctx.apply(Fn.ADD, start, ctx.apply(Fn.MUL, places, delta))


def _steps(ctx: NodeContext, start: AnyExtent, limit: AnyExtent, delta: AnyExtent) -> AnyExtent:
    """How many numbers a range has."""
    step = ctx.number(delta, "delta")
    if step == 0:
        raise Unsupported("delta=0", "give another one")
    way = limit - start if step > 0 else start - limit
    return extreme(SizeOp.MAX, (way + (abs(step) - 1)) // abs(step), 0)


def _whole(ctx: NodeContext, index: int, what: str) -> AnyExtent:
    """Operand *index*, one number without a fraction, which follows from sizes."""
    if ctx.operand(index) in ctx.known:
        found = ctx.known[ctx.operand(index)].item()
        whole = found if not isinstance(found, Ratio) else found.above if found.below == 1 else None
    else:
        number = _end(ctx, index, what).item()
        whole = int(number) if number == int(number) else None
    if whole is None:
        raise Unsupported(what, "beside sizes, all bounds must be whole numbers")
    return whole


def eye_like(ctx: NodeContext) -> str:
    """Ones on a diagonal of a matrix of the operand's shape."""
    ctx.require_rank(0, 2)
    code: int = ctx.attr("dtype", 0)
    dtype = dtype_of(code) if code else ctx.type().dtype
    k = ctx.attr("k", 0)
    if dims_of(ctx.shape()):
        row, column = (ctx.places(extent, 1 - d) for d, extent in enumerate(ctx.shape()))
        diagonal = ctx.apply(Fn.ADD, row, ctx.literal(k, DType.INT64))
        return ctx.cast(ctx.apply(Fn.EQUAL, diagonal, column), dtype)
    rows, columns = ctx.constant_shape(ctx.shape(), dtype)
    return _add(ctx, np.eye(rows, columns, k).astype(dtype.numpy))


def _add(ctx: NodeContext, array: Array) -> str:
    return ctx.builder.share_constant(ctx.node.output[0], array)


OPERATORS = {
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
    "EyeLike": eye_like,
    "Range": range_,
    "Shape": shape,
    "Size": size,
}
