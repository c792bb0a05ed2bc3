"""Whether a network's outputs agree with another engine's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["assert_agree", "assert_same_boxes"]

Array = NDArray[Any]
_TOLERANCE = 1e-3
"""Of the largest element of an output."""
_OVERLAP = 0.99
_MATCHED = 0.99


def assert_agree(names: Sequence[str], found: Sequence[Array], wanted: Sequence[Array]) -> float:
    """Check every output; returns the largest difference over the largest element."""
    worst = 0.0
    for name, got, want in zip(names, found, wanted, strict=True):
        want = _array(want)
        assert (got.dtype, got.shape) == (want.dtype, want.shape), (
            f"{name} is {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
        )
        if want.dtype.kind not in "f":
            differ = int((got != want).sum())
            assert not differ, f"{name}: {differ} of {want.size} differ"
            continue
        scale = max(float(np.abs(want).max(initial=0.0)), 1e-30)
        off = float(np.abs(got - want).max(initial=0.0)) / scale
        assert off <= _TOLERANCE, f"{name}: off by {off:.3g} of its largest element"
        worst = max(worst, off)
    return worst


def assert_same_boxes(found: Sequence[Array], wanted: Sequence[Array]) -> float:
    """Check that nearly all boxes have a partner of the same label; returns the share without.

    Outputs are boxes, scores and labels.
    """
    boxes, scores, labels = found
    assert len(boxes) == len(scores) == len(labels)
    if not len(wanted[0]):
        assert not len(boxes), f"{len(boxes)} boxes instead of none"
        return 0.0
    overlap = _overlaps(wanted[0], boxes) * (wanted[2][:, None] == labels[None])
    missed = 1 - float((overlap.max(1, initial=0.0) >= _OVERLAP).mean())
    extra = 1 - float((overlap.max(0, initial=0.0) >= _OVERLAP).mean()) if len(boxes) else 0.0
    assert max(missed, extra) <= 1 - _MATCHED, (
        f"{missed:.0%} of {len(wanted[0])} boxes are not found, "
        f"{extra:.0%} of {len(boxes)} are too many"
    )
    return max(missed, extra)


def _array(value: Any) -> Array:
    """*value* of an output; maps from class to score become rows of a matrix."""
    if isinstance(value, list):
        return np.array([list(row.values()) for row in value], np.float32)
    return np.asarray(value)


def _overlaps(a: Array, b: Array) -> Array:
    """Intersection over union of every pair; 1 if corners agree, as those of flat boxes may."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    inner = np.prod(np.maximum(high - low, 0.0), axis=-1)
    sizes = [np.prod(x[:, 2:] - x[:, :2], axis=-1) for x in (a, b)]
    apart = np.abs(a[:, None] - b[None]).max(-1)
    alike = apart <= _TOLERANCE * max(float(np.abs(a).max(initial=0.0)), 1e-30)
    found = inner / np.maximum(sizes[0][:, None] + sizes[1][None] - inner, 1e-12)
    return np.where(alike, 1.0, found)
