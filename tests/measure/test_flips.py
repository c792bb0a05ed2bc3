"""Results that differ by a step of rounding, in few elements, are right."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from ansorpy.ir import builders as b
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.measure.flips import may_flip, without_flips

X = placeholder((8, 16), name="X")


@pytest.mark.parametrize(
    ("made", "flips"),
    [
        (compute((8, 16), lambda i, j: b.round(X[i, j]) * 0.5, name="A"), True),
        (compute((8, 16), lambda i, j: X[i, j].astype(DType.INT8), name="B"), True),
        (compute((8, 16), lambda i, j: b.exp(X[i, j]), name="C"), False),
    ],
    ids=["rounds", "casts", "neither"],
)
def test_what_rounds_anywhere_before_the_result_may_flip(made: Tensor, flips: bool) -> None:
    k = reduce_axis(16, name="k")
    total = compute((8,), lambda i: b.sum(made[i, k].astype(DType.FLOAT32), axis=k), name="S")
    assert may_flip(ComputeDAG.of([X, total]), total) == flips


def steps(rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    return rng.integers(0, 256, 4096).astype(np.uint8)


def test_few_elements_one_step_away_are_the_references(rng: np.random.Generator) -> None:
    want = steps(rng)
    got = want.copy()
    got[[7, 4000]] ^= 1
    np.testing.assert_array_equal(without_flips(got, want, 0.0, 0.0), want)
    scaled = without_flips(got * np.float32(0.02), want * np.float32(0.02), 1e-6, 0.0)
    np.testing.assert_array_equal(scaled, want * np.float32(0.02))


def test_many_elements_or_many_steps_are_wrong(rng: np.random.Generator) -> None:
    want = steps(rng)
    many, far = want.copy(), want.copy()
    many[::64] ^= 1
    far[5] ^= 128
    for got in (many, far):
        np.testing.assert_array_equal(without_flips(got, want, 0.0, 0.0), got)
