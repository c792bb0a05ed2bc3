"""Sums of exponentials made relative to another maximum (online softmax)."""

from __future__ import annotations

from ansorpy.ir import builders
from ansorpy.ir.expr import Expr

__all__ = ["rescaling"]


def rescaling(before: Expr, after: Expr, scale: float) -> Expr:
    """What to multiply a sum of exponentials by when their maximum grows from *before* to *after*.

    Scores that are all ``-inf`` so far have no finite maximum; their sums are 0.
    """
    lowest = -before.dtype.normal[1]
    grown = builders.maximum(before, lowest) - builders.maximum(after, lowest)
    return builders.exp(grown if scale == 1.0 else grown * scale)
