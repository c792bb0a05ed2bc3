"""The bound that tests hold programs to."""

from __future__ import annotations

import numpy as np

from ansorpy.ir.builders import exp
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.tensor import compute, placeholder
from tests.rounding import Reference


def test_a_quotient_whose_divisor_overflows_may_be_zero() -> None:
    x = placeholder((2,), name="x")
    dag = ComputeDAG([compute((2,), lambda i: 1.0 / (1.0 + exp(-x[i])), name="y")])
    reference = Reference(dag, {"x": np.array([-90, 2], np.float32)})
    right = reference.expected[0].astype(np.float32)
    assert 0 < right[0] < 1e-38
    assert reference.shares([np.array([0, right[1]], np.float32)], dag)[0] <= 1
    assert reference.shares([np.array([1e-36, right[1]], np.float32)], dag)[0] > 1
    assert reference.shares([np.array([0, right[1] + 1e-5], np.float32)], dag)[0] > 1
