"""The bits of elements as those of another type of the same width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansorpy.graph.ops.base import TensorType
from ansorpy.graph.ops.narrow.conversions import Converted
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Call, Expr, Function

__all__ = ["Reinterpret"]


@dataclass(frozen=True)
class Reinterpret(Converted):
    """Elements with the same bits, of type ``dtype``."""

    dtype: DType

    @property
    def made(self) -> DType:
        return self.dtype

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        given = inputs[0].dtype
        if given.bits != self.dtype.bits:
            raise ValueError(f"{given.value} and {self.dtype.value} differ in size")
        return super().infer(inputs)

    def converted(self, x: Expr) -> Expr:
        return _of_bits(_bits(x), self.dtype)


_UNSIGNED = {16: DType.UINT16, 32: DType.UINT32, 64: DType.UINT64}


def _bits(x: Expr) -> Expr:
    return Call(Function.BITS, (x,)) if x.dtype.is_float else x


def _of_bits(bits: Expr, wanted: DType) -> Expr:
    """The value of the type *wanted* with these *bits*, an integer's."""
    if not wanted.is_float:
        return bits.astype(wanted)
    unsigned = bits.astype(_UNSIGNED[wanted.bits])
    if wanted is DType.BFLOAT16:
        wide = unsigned.astype(DType.UINT32) << 16
        return Call(Function.FROM_BITS, (wide,)).astype(wanted)
    return Call(Function.FROM_BITS, (unsigned,))
