"""Tensor maps, which tell the copy engine how a tensor is copied in boxes, made by the driver."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from ansorpy.codegen.cuda.launch.plan import STRIDE_UNIT, BoxedTensor
from ansorpy.errors import CodegenError, MissingDependency
from ansorpy.ir.sizes import fixed

__all__ = ["tensor_map"]

_BYTES, _ALIGNMENT = 128, 64
"""Of CUDA's ``CUtensorMap``."""

_INTO_L2 = 2
"""Lines of 128 bytes are fetched into the L2 cache (``CU_TENSOR_MAP_L2_PROMOTION_L2_128B``)."""


def tensor_map(address: int, form: BoxedTensor) -> npt.NDArray[np.uint8]:
    """The tensor map of the tensor of this *form* at *address*: 128 aligned bytes.

    Raises:
        MissingDependency: The driver is older than CUDA 12.
        CodegenError: The driver refuses the tensor.
    """
    room = np.zeros(_BYTES + _ALIGNMENT, np.uint8)
    start = -room.ctypes.data % _ALIGNMENT
    found = room[start : start + _BYTES]
    kind, extents, strides, box, swizzle = form.encoding
    rank = len(extents)
    failed = _encode()(
        ctypes.c_void_p(found.ctypes.data), kind, rank, ctypes.c_void_p(address),
        (ctypes.c_uint64 * rank)(*(max(fixed(n), 1) for n in extents)),
        (ctypes.c_uint64 * rank)(*(max(fixed(n), STRIDE_UNIT) for n in strides)),
        (ctypes.c_uint32 * rank)(*box), (ctypes.c_uint32 * rank)(*(1,) * rank),
        0, swizzle, _INTO_L2, 0,
    )  # fmt: skip
    if failed:
        raise CodegenError(f"the CUDA driver refuses to copy {form.shape} in boxes ({failed})")
    return found


def _encode() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled
    except (OSError, AttributeError) as error:
        raise MissingDependency(
            f"the CUDA driver has no tensor maps ({error})", hint="install one of CUDA 12 or newer"
        ) from error
