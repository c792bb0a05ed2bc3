"""The arithmetic-intensity curve: operations per byte, from the innermost loop outwards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ansorpy.arrays import Floats
from ansorpy.cost.features.group import FeatureGroup
from ansorpy.cost.nest_view import LeafView

__all__ = ["INTENSITY", "SAMPLES"]

SAMPLES = 10
"""Number of points sampled from the curve, at equal steps of operations.  Source: TVM."""


def _curve(view: LeafView) -> tuple[Floats, Floats]:
    """Float operations, and operations per touched byte, at each loop, innermost first.

    Loops of one iteration repeat a point.  Loops that have one iteration in every setting are left
    out, except for the innermost, where the curve starts.
    """
    loops = [n for n in reversed(range(view.depth)) if n in view.real or n == view.depth - 1]
    ops, per_byte = np.empty((len(loops), view.rows)), np.empty((len(loops), view.rows))
    for at, loop in enumerate(loops):
        np.multiply(view.inner_prod[loop], view.ops.floats.total, out=ops[at])
        np.divide(ops[at], view.touched[loop], out=per_byte[at])
    return ops, per_byte


def _intensity(view: LeafView) -> Sequence[Floats | float]:
    if view.depth == 0 or view.ops.floats.total == 0:
        return [0.0] * SAMPLES
    ops, per_byte = _curve(view)
    at = ops[-1] * np.arange(1, SAMPLES + 1)[:, None] / SAMPLES
    point = np.zeros(at.shape, dtype=np.int64)
    below = at - 1e-4
    for done in ops[:-1]:
        point += done < below
    before = np.maximum(point - 1, 0)
    x0, x1 = _pick(ops, before), _pick(ops, point)
    y0, y1 = _pick(per_byte, before), _pick(per_byte, point)
    slope = (y1 - y0) / np.where(point > 0, x1 - x0, 1.0)
    return list(np.where(point > 0, y0 + slope * (at - x0), per_byte[0]))


def _pick(curve: Floats, index: npt.NDArray[np.int64]) -> Floats:
    picked: Floats = curve.ravel().take(index * curve.shape[1] + np.arange(curve.shape[1]))
    return picked


INTENSITY = FeatureGroup(
    "intensity",
    "operations per touched byte when 10%, 20%, ... of the operations are inside",
    tuple(f"arith_intensity_{i}" for i in range(SAMPLES)),
    _intensity,
)
