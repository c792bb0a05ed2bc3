"""The arithmetic-intensity curve: how operations per byte grow from the innermost loop outwards."""

from __future__ import annotations

import numpy as np

from ansorpy.cost.features.group import FeatureGroup
from ansorpy.cost.view import Floats, LeafView

__all__ = ["INTENSITY", "SAMPLES"]

SAMPLES = 10
"""Points of the curve, at equal steps of the operations done. Source: TVM."""


def _curve(view: LeafView) -> tuple[Floats, Floats]:
    """Float operations and operations per touched byte at each loop, innermost first."""
    ops, per_byte = [], []
    for loop in reversed(range(view.depth)):
        done = view.ops.floats.total * view.inner_prod[loop]
        touched = np.zeros(view.rows)
        for buffer in view.buffers:
            touched = touched + buffer.region[loop] * buffer.elem_bytes
        ops.append(done)
        per_byte.append(done / touched)
    return np.stack(ops), np.stack(per_byte)


def _intensity(view: LeafView) -> list[Floats]:
    if view.depth == 0 or view.ops.floats.total == 0:
        return [np.zeros(view.rows)] * SAMPLES
    ops, per_byte = _curve(view)
    values = []
    for i in range(SAMPLES):
        at = ops[-1] * (i + 1) / SAMPLES
        point = np.minimum((ops < at - 1e-4).sum(axis=0), view.depth - 1)
        before = np.maximum(point - 1, 0)
        x0, x1 = _pick(ops, before), _pick(ops, point)
        y0, y1 = _pick(per_byte, before), _pick(per_byte, point)
        slope = (y1 - y0) / np.where(point > 0, x1 - x0, 1.0)
        values.append(np.where(point > 0, y0 + slope * (at - x0), per_byte[0]))
    return values


def _pick(curve: Floats, index: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Floats:
    picked: Floats = np.take_along_axis(curve, index[None], axis=0)[0]
    return picked


INTENSITY = FeatureGroup(
    "intensity",
    "operations per touched byte when 10%, 20%, ... of the operations are inside",
    tuple(f"arith_intensity_{i}" for i in range(SAMPLES)),
    _intensity,
)
