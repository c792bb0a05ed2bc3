"""The product that matrix products and convolutions sum."""

from __future__ import annotations

from ansorpy.graph.op.base import NARROW
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr

__all__ = ["times"]


def times(x: Expr, y: Expr) -> Expr:
    """``x * y``; of two 8-bit integers as int32."""
    if x.dtype in NARROW and y.dtype in NARROW:
        return x.astype(DType.INT32) * y.astype(DType.INT32)
    return x * y
