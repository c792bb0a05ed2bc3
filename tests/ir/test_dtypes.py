"""Element types: the limits of floats are those of numpy."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.ir.dtypes import DType


@pytest.mark.parametrize("dtype", [dtype for dtype in DType if dtype.is_float])
def test_floats_know_their_precision_and_range(dtype: DType) -> None:
    def rounded(number: float) -> float:
        return float(np.asarray(number, dtype.numpy))

    least, most = dtype.normal
    assert rounded(1 + dtype.epsilon) > rounded(1 + 0.49 * dtype.epsilon) == 1
    assert rounded(least) == least and rounded(most) == most
    assert rounded(least * (1 + dtype.epsilon)) > least == rounded(least * (1 + dtype.epsilon / 4))
    with np.errstate(over="ignore"):
        assert np.isinf(np.asarray(most, dtype.numpy) * np.asarray(1.01, dtype.numpy))


def test_sums_of_half_precision_are_single() -> None:
    wider = {dtype: dtype.of_sums for dtype in DType if dtype.of_sums is not dtype}
    assert wider == dict.fromkeys((DType.FLOAT16, DType.BFLOAT16), DType.FLOAT32)
