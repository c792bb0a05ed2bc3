"""Types of numpy arrays, for annotations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Floats", "Ints", "Masks"]

Array = NDArray[Any]
"""An array of any element type."""
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Masks = NDArray[np.bool_]
