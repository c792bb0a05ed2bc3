"""Operators on constant arrays give what the compiled network would."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.graph.ops import Cast
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import compute, placeholder

FLOATS = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 300.7, -1.5, 0.0], np.float32)
EXACT = {
    DType.INT32: [0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 300, -1, 0],
    DType.INT8: [0, -1, 0, -1, 0, 44, -1, 0],
    DType.BOOL: [True, True, True, True, True, True, True, False],
}


@pytest.mark.parametrize("wanted", EXACT, ids=str)
def test_constants_are_converted_as_values_are(wanted: DType) -> None:
    x = placeholder(FLOATS.shape, name="x")
    y = compute(FLOATS.shape, lambda i: x[i].astype(wanted), name="y")
    found = Cast(wanted).evaluate([FLOATS])
    assert found is not None and found.dtype == wanted.numpy
    assert found.tolist() == run_dag(ComputeDAG([y]), {"x": FLOATS})[0].tolist() == EXACT[wanted]
