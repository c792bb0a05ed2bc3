"""C types of elements in memory, and of the values computed from them."""

from __future__ import annotations

from ansorpy.ir.dtypes import DType

__all__ = ["computed_type", "register_type", "short_name", "storage_type"]

_NAMES = {DType.FLOAT64: "double", DType.FLOAT32: "float"}
_STORED = {DType.FLOAT16: "uint16_t", DType.BFLOAT16: "uint16_t", DType.BOOL: "uint8_t"}
_SHORT = {
    DType.FLOAT64: "f64", DType.FLOAT32: "f32", DType.FLOAT16: "f16", DType.BFLOAT16: "bf16",
    DType.INT64: "i64", DType.INT32: "i32", DType.INT16: "i16", DType.INT8: "i8",
    DType.UINT64: "u64", DType.UINT32: "u32", DType.UINT16: "u16", DType.UINT8: "u8",
    DType.BOOL: "bool",
}  # fmt: skip


def storage_type(dtype: DType) -> str:
    """The C type of one element in memory."""
    return _STORED.get(dtype) or _NAMES.get(dtype) or f"{dtype.value}_t"


def register_type(dtype: DType) -> str:
    """The C type in which values of *dtype* are computed."""
    if dtype is DType.BOOL:
        return "bool"
    return "float" if dtype.is_half else storage_type(dtype)


def computed_type(dtype: DType) -> DType:
    """The type in which helpers compute *dtype*: float32 for 16-bit floats, at least 32 bits for
    integers."""
    if dtype.is_float:
        return DType.FLOAT32 if dtype.is_half else dtype
    return dtype if dtype.bits >= 32 else DType.INT32 if dtype.is_signed else DType.UINT32


def short_name(dtype: DType) -> str:
    """The suffix of helper names: ``i32`` for int32."""
    return _SHORT[dtype]
