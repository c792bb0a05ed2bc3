"""Constants that zeroed memory holds already."""

from __future__ import annotations

import math

from ansorpy.ir.expr import Const, Expr

__all__ = ["is_zero"]


def is_zero(e: Expr) -> bool:
    """True for a constant whose bits are all 0: for 0 and False, not for -0.0."""
    return isinstance(e, Const) and e.value == 0 and math.copysign(1.0, e.value) > 0
