"""Every float32 function keeps its stated error at bit patterns spread over the whole range."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.llvm.sweep import FUNCTIONS, Swept

STRIDE = 4093  # a prime: every exponent, and all low bits, come in all combinations


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_error_over_the_whole_range(name: str) -> None:
    start = int(np.random.default_rng().integers(STRIDE))
    swept = Swept(name)
    error, where = swept.worst(STRIDE, start)
    assert error <= swept.stated, f"{error:.3g} ULP at {where!r} (start {start})"
