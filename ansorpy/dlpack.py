"""Arrays of bfloat16 from other libraries, which numpy's ``from_dlpack`` does not read.

numpy has the type only as an extension (``ml_dtypes``).  The capsule of ``__dlpack__`` has the
layout of https://dmlc.github.io/dlpack/latest/c_api.html, version 0.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ansorpy.arrays import Array

__all__ = ["bfloat16_array"]

_BFLOAT = 4
"""DLPack's code of the kind of element."""
_address_in = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class _Tensor(ctypes.Structure):
    """``DLTensor``."""

    _fields_ = (
        ("data", c_void_p), ("device", c_int32 * 2), ("ndim", c_int32), ("code", c_uint8),
        ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)), ("byte_offset", c_uint64),
    )  # fmt: skip


class _Memory:
    """What numpy asks for the memory of an array, which keeps the capsule that owns it."""

    def __init__(self, capsule: object, tensor: _Tensor, dtype: np.dtype[Any]) -> None:
        self.capsule = capsule
        strides = tensor.strides[: tensor.ndim] if tensor.strides else None
        self.__array_interface__ = {
            "version": 3,
            "data": ((tensor.data or 0) + tensor.byte_offset, False),
            "shape": tuple(tensor.shape[: tensor.ndim]),
            "strides": strides and tuple(stride * dtype.itemsize for stride in strides),
            "typestr": dtype.str,
        }


def bfloat16_array(value: Any, dtype: np.dtype[Any]) -> Array | None:
    """The numpy array of *value*'s own memory, the CPU's; None if it is not one of bfloat16.

    Args:
        dtype: The type of the array, which is bfloat16 for numpy.

    Raises:
        BufferError, RuntimeError, TypeError: *value* does not hand its memory over.
    """
    capsule = value.__dlpack__()
    tensor = _Tensor.from_address(_address_in(capsule, b"dltensor"))
    if (tensor.code, tensor.bits, tensor.lanes) != (_BFLOAT, 16, 1):
        return None
    return np.asarray(_Memory(capsule, tensor, dtype)).view(dtype)
