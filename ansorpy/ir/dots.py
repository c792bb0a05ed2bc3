"""Dot products of words: instructions that multiply and add 8- or 16-bit parts of a register.

Each is described by data: the types of the parts, the number of parts in a 32-bit word, and the
type of the sum.  A reduction over words is an ordinary reduction of 32-bit elements, so every rule
for tiling, packing and registers applies; without the instruction, generators compute part by part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Function

__all__ = ["DOTS", "Dot"]


@dataclass(frozen=True)
class Dot:
    """``sum(left part * right part)`` over the ``terms`` parts of two words, as ``result``."""

    left: DType
    right: DType
    result: DType

    @property
    def terms(self) -> int:
        """Number of parts of a word."""
        return 32 // self.left.bits


DOTS: Mapping[Function, Dot] = {
    Function.DOT_U8S8: Dot(DType.UINT8, DType.INT8, DType.INT32),
    Function.DOT_S8S8: Dot(DType.INT8, DType.INT8, DType.INT32),
    Function.DOT_BF16: Dot(DType.BFLOAT16, DType.BFLOAT16, DType.FLOAT32),
}
"""x86: AVX-512 VNNI or AVX-VNNI ``vpdpbusd``, AVX512-BF16 ``vdpbf16ps``; Arm: ``sdot``."""
