"""Which arrays a program on a GPU takes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ansorpy.errors import UsageError
from ansorpy.runtime.gpu.operands import operand
from ansorpy.runtime.ports import Port
from tests.codegen.cuda.simulated import SimulatedArray, SimulatedDevice


def test_bfloat16_is_what_its_interface_says_as_bytes() -> None:
    values = np.arange(7).astype(ml_dtypes.bfloat16)
    array = SimulatedArray(SimulatedDevice(), values)
    assert np.dtype(array.__cuda_array_interface__["typestr"]) != values.dtype
    taken = operand("input", Port("x", (7,), values.dtype), array)
    assert (taken.address, taken.nbytes) == (array.address, 14)


@pytest.mark.parametrize("dtype", [np.float16, np.int16, ml_dtypes.float8_e4m3fn])
def test_other_types_are_not_taken_for_bfloat16(dtype: type) -> None:
    array = SimulatedArray(SimulatedDevice(), np.zeros(7, dtype))
    with pytest.raises(UsageError, match=r"input 'x' takes .*bfloat16.*, got"):
        operand("input", Port("x", (7,), np.dtype(ml_dtypes.bfloat16)), array)


class Differentiated:
    """A tensor that requires gradients, as torch shows it."""

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad.")


def test_a_tensor_that_requires_gradients_is_refused() -> None:
    with pytest.raises(UsageError, match="input 'x' cannot be used: .* requires grad"):
        operand("input", Port("x", (7,), np.dtype(np.float32)), Differentiated())
