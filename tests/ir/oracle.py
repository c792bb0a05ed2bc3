"""Random inputs for a definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ansorpy.ir.dag import ComputeDAG


def random_inputs(dag: ComputeDAG, seed: int = 0) -> dict[str, npt.NDArray[Any]]:
    """Standard normal floats; integers that are valid indices of small dimensions."""
    rng = np.random.default_rng(seed)
    found: dict[str, npt.NDArray[Any]] = {}
    for op in dag.args:
        if op.dtype.is_float:
            found[op.name] = rng.standard_normal(op.shape).astype(op.dtype.numpy)
        else:
            found[op.name] = rng.integers(0, 4, op.shape).astype(op.dtype.numpy)
    return found
