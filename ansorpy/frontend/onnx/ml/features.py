"""Features: scaled, encoded, imputed, chosen, joined."""

from __future__ import annotations

import logging

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext, Translate, dtype_of
from ansorpy.frontend.onnx.ml.shared import columns_of
from ansorpy.frontend.onnx.operators.movement import resized
from ansorpy.frontend.onnx.reader import array_of
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ir import Array
from ansorpy.graph.ops import ArgReduce, Fn, Gather, Reduce, ReduceKind
from ansorpy.ir.dtypes import DType, as_dtype

__all__ = ["OPERATORS"]

_LOG = logging.getLogger(__name__)


def array_feature_extractor(ctx: NodeContext) -> str:
    """The elements of the last axis with the given indices."""
    shape = ctx.shape()
    indices = ctx.reshape(ctx.input(1), (ctx.type(1).size,))
    found = ctx.emit(Gather(len(shape) - 1), [ctx.input(0), indices])
    kept = ctx.type_of(found).shape
    return ctx.reshape(found, (1, *kept)) if len(kept) == 1 else found


def binarizer(ctx: NodeContext) -> str:
    """1 above a threshold, else 0."""
    above = ctx.apply(Fn.LESS, ctx.literal(ctx.attr("threshold", 0.0)), ctx.input())
    return ctx.cast(above, ctx.type().dtype)


def feature_vectorizer(ctx: NodeContext) -> str:
    """Several groups of features beside each other, as floats.

    A group is cut, or filled up with zeros, to its number in ``inputdimensions``.
    """
    wanted = ctx.ints("inputdimensions", ())
    if wanted and len(wanted) != len(ctx.node.input):
        raise Unsupported(f"inputdimensions={wanted}", f"give {len(ctx.node.input)} numbers")
    parts = []
    for n in range(len(ctx.node.input)):
        shape = ctx.shape(n)
        value = ctx.cast(ctx.input(n), DType.FLOAT32)
        value = value if len(shape) == 2 else ctx.reshape(value, (1, ctx.type(n).size))
        rows = ctx.type_of(value).shape[0]
        parts.append(resized(ctx, value, (rows, wanted[n])) if wanted else value)
    return ctx.concat(parts, 1)


def imputer(ctx: NodeContext) -> str:
    """What is missing (NaN, or one value) replaced by a value for each feature."""
    dtype, is_float = ctx.type().dtype, ctx.type().dtype.is_float
    name = "imputed_value_floats" if is_float else "imputed_value_int64s"
    values: Array = np.asarray(ctx.attr(name, ()))
    features = ctx.shape()[-1]
    if len(values) not in (1, features):
        raise Unsupported(f"{len(values)} values in {name}", f"give 1 or {features}")
    marker = ctx.attr("replaced_value_float" if is_float else "replaced_value_int64", 0)
    if is_float and np.isnan(marker):
        missing = ctx.apply(Fn.IS_NAN, ctx.input())
    else:
        missing = ctx.apply(Fn.EQUAL, ctx.input(), ctx.literal(marker, dtype))
    filled = ctx.literal(values if len(values) > 1 else values[0], dtype)
    return ctx.apply(Fn.WHERE, missing, filled, ctx.input())


def label_encoder(ctx: NodeContext) -> str:
    """A number for each key among numbers; a default for others."""
    keys, values = _mapping(ctx, "keys"), _mapping(ctx, "values")
    if len(keys) != len(values):
        raise Unsupported(f"{len(keys)} keys and {len(values)} values", "give as many of both")
    dtype = as_dtype(values.dtype)
    shape, rank = ctx.shape(), len(ctx.shape())
    given = ctx.reshape(ctx.input(), (*shape, 1))
    same = ctx.apply(Fn.EQUAL, given, ctx.literal(keys))
    if ctx.type().dtype.is_float and np.isnan(keys).any():
        nan = ctx.apply(
            Fn.AND, ctx.apply(Fn.IS_NAN, given), ctx.literal(np.isnan(keys), DType.BOOL)
        )
        same = ctx.apply(Fn.OR, same, nan)
    counted = ctx.cast(same, DType.INT32)
    place = ctx.reshape(ctx.emit(ArgReduce(ReduceKind.MAX, rank), [counted]), shape)
    known = ctx.emit(Reduce(ReduceKind.MAX, (rank,), False), [counted])
    found = ctx.emit(Gather(0), [ctx.literal(values, dtype), place])
    is_known = ctx.apply(Fn.LESS, ctx.literal(0, DType.INT32), known)
    return ctx.apply(Fn.WHERE, is_known, found, ctx.literal(_default(ctx, dtype), dtype))


def _mapping(ctx: NodeContext, side: str) -> np.ndarray:
    """The keys or the values of a mapping between numbers."""
    tensor = ctx.attr(f"{side}_tensor", None)
    if tensor is not None:
        dtype_of(tensor.data_type)
        return array_of(tensor).reshape(-1)
    for name, kind in ((f"{side}_int64s", np.int64), (f"{side}_floats", np.float32)):
        held = ctx.attr(name, ())
        if len(held):
            return np.asarray(held, kind)
    raise Unsupported(f"{side}_strings", "texts are not supported; map numbers to numbers")


def _default(ctx: NodeContext, dtype: DType) -> Array | float:
    tensor = ctx.attr("default_tensor", None)
    if tensor is not None:
        return array_of(tensor).reshape(())
    return ctx.attr("default_float", -0.0) if dtype.is_float else ctx.attr("default_int64", -1)


def normalizer(ctx: NodeContext) -> str:
    """Each sample divided by its largest element, or by its norm.

    Differs: onnx's reference divides by the largest magnitude, its specification does not.
    """
    x = ctx.cast(columns_of(ctx), DType.FLOAT32)
    kind = ctx.attr("norm", "MAX")
    if kind not in ("MAX", "L1", "L2"):
        raise Unsupported(f"norm={kind}", "use one of MAX, L1, L2")
    sizes = ctx.apply(Fn.MUL, x, x) if kind == "L2" else ctx.apply(Fn.ABS, x) if kind == "L1" else x
    how = ReduceKind.MAX if kind == "MAX" else ReduceKind.SUM
    whole = ctx.emit(Reduce(how, (1,), True), [sizes])
    whole = ctx.apply(Fn.SQRT, whole) if kind == "L2" else whole
    zero = ctx.literal(0.0, DType.FLOAT32)
    divisor = ctx.apply(
        Fn.WHERE, ctx.apply(Fn.EQUAL, whole, zero), ctx.literal(1.0, DType.FLOAT32), whole
    )
    return ctx.reshape(ctx.apply(Fn.DIV, x, divisor), ctx.shape())


def one_hot_encoder(ctx: NodeContext) -> str:
    """A new last axis with 1 at the category of each element, which is a number.

    Differs: of a category that is not known, all are 0, even if that is to be an error.
    """
    categories = np.asarray(ctx.ints("cats_int64s", ()), np.int64)
    if not len(categories):
        raise Unsupported("cats_strings", "texts are not supported; encode numbers")
    if not ctx.attr("zeros", 1):
        _LOG.warning("%s: categories that are not known become zeros, no error", ctx.node.output[0])
    given = ctx.reshape(ctx.cast(ctx.input(), DType.INT64), (*ctx.shape(), 1))
    same = ctx.apply(Fn.EQUAL, given, ctx.literal(categories, DType.INT64))
    return ctx.cast(same, DType.FLOAT32)


def scaler(ctx: NodeContext) -> str:
    """``(x - offset) * scale`` for each feature, rounded to float32 once."""
    dtype = ctx.type().dtype if ctx.type().dtype.is_float else DType.FLOAT32
    x = ctx.cast(ctx.input(), dtype)
    for name, fn in (("offset", Fn.SUB), ("scale", Fn.MUL)):
        values = np.asarray(ctx.attr(name, ()), np.float32)
        if len(values):
            x = ctx.apply(fn, x, ctx.literal(values if len(values) > 1 else values[0], dtype))
    return ctx.cast(x, DType.FLOAT32)


OPERATORS: dict[str, Translate] = {
    "ArrayFeatureExtractor": array_feature_extractor,
    "Binarizer": binarizer,
    "FeatureVectorizer": feature_vectorizer,
    "Imputer": imputer,
    "LabelEncoder": label_encoder,
    "Normalizer": normalizer,
    "OneHotEncoder": one_hot_encoder,
    "Scaler": scaler,
}
