"""Tolerate quantized elements that two correct programs round to neighbouring steps.

Quantized networks round in the middle of a definition.  If a sum lies halfway between two steps and
two programs add it up in different orders, they may round it to different steps: their results then
differ by a whole step, in few elements.
"""

from __future__ import annotations

import numpy as np

from ansorpy.arrays import Array
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Call, Cast, Expr, Function, walk
from ansorpy.ir.tensor import Tensor

__all__ = ["may_flip", "without_flips"]


_SHARE = 2.0**-8
"""Fraction of the elements that may be off.  An error of a millionth of 256 steps moves one sum in
2,000 across the midpoint between two steps."""
_STEP = 2.0**-6
"""How far they may be off, as a fraction of the largest value: four of a byte's 256 steps, because
the errors of rounded operands add up."""
_STEPPING = frozenset({Function.ROUND, Function.FLOOR, Function.CEIL})


def may_flip(dag: ComputeDAG, output: Tensor) -> bool:
    """Whether floats are rounded to integers on the path to *output*."""
    return any(_is_step(node) for op in dag.leading_to(output) for node in walk(op.body))


def without_flips(got: Array, want: Array, allowed: float, least: float) -> Array:
    """Replace values of *got* that were rounded to another step by those of *want*, if few were.

    Args:
        allowed: Error that every element may have, as a fraction of the largest value.
        least: Replaces the largest value if all are smaller.
    """
    a, b = got.astype(np.float64), want.astype(np.float64)
    scale = max(float(np.abs(b).max(initial=0.0, where=np.isfinite(b))), least)
    step = _STEP * scale if want.dtype.kind == "f" else max(1.0, _STEP * scale)
    with np.errstate(invalid="ignore"):
        off = np.abs(a - b)
    flipped = (off > allowed * scale) & (off <= step)
    if np.count_nonzero(flipped) > max(1.0, _SHARE * flipped.size):
        return got
    return np.where(flipped, want, got)


def _is_step(node: Expr) -> bool:
    if isinstance(node, Call):
        return node.fn in _STEPPING
    return isinstance(node, Cast) and node.x.dtype.is_float and node.type.is_int
