"""Constants of narrow element types (float8, int4 ...), which kernels do not support.

Weights may be stored in these types; they are converted to floats before use.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx
from onnx import NodeProto, TensorProto

from ansorpy.frontend.onnx.context import Unsupported
from ansorpy.frontend.onnx.reader import array_of
from ansorpy.ir.dtypes import as_dtype

__all__ = ["NarrowArray", "is_narrow", "narrow_constant", "narrow_type", "refused"]

NarrowArray = npt.NDArray[np.generic]


def is_narrow(dtype: np.dtype[np.generic]) -> bool:
    """True for the types of ml_dtypes that :class:`DType` lacks: float8, int4 and the like."""
    if dtype.type.__module__ != "ml_dtypes":
        return False
    try:
        as_dtype(dtype)
    except ValueError:
        return True
    return False


def narrow_type(code: int) -> bool:
    """Like :func:`is_narrow`, for an ONNX type code."""
    try:
        return is_narrow(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code)))
    except (KeyError, TypeError):
        return False


def narrow_constant(node: NodeProto) -> NarrowArray | None:
    """The value of a ``Constant`` node of a narrow type; None for any other node."""
    if node.op_type != "Constant":
        return None
    tensors: list[TensorProto] = [a.t for a in node.attribute if a.name == "value"]
    narrow = [array_of(t) for t in tensors if narrow_type(t.data_type)]
    return narrow[0] if narrow else None


def refused(array: NarrowArray) -> Unsupported:
    """The reason why *array* cannot be an operand of a computation at run time."""
    name = onnx.TensorProto.DataType.Name(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))
    return Unsupported(
        f"element type {name}", "it is for constants that DequantizeLinear or Cast turns to floats"
    )
