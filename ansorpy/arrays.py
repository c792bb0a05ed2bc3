"""Types of numpy arrays, for annotations, and how arrays are held and told apart."""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Floats", "Ints", "Masks", "compact", "content_of"]

Array = NDArray[Any]
"""An array of any element type."""
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Masks = NDArray[np.bool_]


def compact(array: Array) -> Array:
    """*array* in row-major order, unless it repeats elements, which would then take memory."""
    axes = zip(array.strides, array.shape, strict=True)
    repeats = any(step == 0 and extent > 1 for step, extent in axes)
    return array if repeats else np.asarray(array, order="C")


def content_of(array: Array) -> Hashable:
    """What is equal for arrays of the same type, shape and elements, bit by bit."""
    held = np.asarray(array, order="C")
    return held.dtype, held.shape, blake2b(held.reshape(-1).view(np.uint8).data).digest()
