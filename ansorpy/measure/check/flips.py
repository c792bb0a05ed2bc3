"""Elements that two correct programs round to neighbouring steps.

Quantized networks round in the middle of a definition.  A sum that lies between two steps, and that
two programs add up in different orders, then ends on different ones: the results differ by a whole
step, in few elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Call, Cast, Expr, Function, walk
from ansorpy.ir.tensor import ComputeOp, Tensor

__all__ = ["may_flip", "without_flips"]

Array = npt.NDArray[Any]

_SHARE = 2.0**-8
"""Elements that may be off.  An error of a millionth of 256 steps takes one sum in 2,000 over the
middle between two steps."""
_STEP = 2.0**-6
"""The most that they may be off, as a fraction of the largest value: four steps of a byte's 256, as
rounded operands add up."""
_STEPPING = frozenset({Function.ROUND, Function.FLOOR, Function.CEIL})


def may_flip(dag: ComputeDAG, output: Tensor) -> bool:
    """Whether floats are rounded to integers on the way to *output*."""
    needed = {output}
    for op in reversed(dag.computes):
        if op in needed:
            needed.update(dag.reads(op))
            if _rounds(op):
                return True
    return False


def without_flips(got: Array, want: Array, allowed: float, least: float) -> Array:
    """*got* with the reference's value where another step was taken, if that is so in few elements.

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


def _rounds(op: ComputeOp) -> bool:
    return any(_is_step(node) for node in walk(op.body))


def _is_step(node: Expr) -> bool:
    if isinstance(node, Call):
        return node.fn in _STEPPING
    return isinstance(node, Cast) and node.x.dtype.is_float and node.type.is_int
