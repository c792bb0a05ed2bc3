"""Constants whose bits are all zero, which zeroed memory already holds."""

from __future__ import annotations

import math

from ansorpy.ir.expr import Const, Expr

__all__ = ["is_zero"]


def is_zero(e: Expr) -> bool:
    """True for a constant whose bits are all 0: 0 and False, but not -0.0."""
    return isinstance(e, Const) and e.value == 0 and math.copysign(1.0, e.value) > 0
