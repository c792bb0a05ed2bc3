"""Every float32 function keeps its stated error at bit patterns spread over the whole range."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.ir.dtypes import DType
from tests.codegen.llvm.sweep import BLOCK, FUNCTIONS, Swept

STRIDE = 65521  # a prime: every exponent, and all low bits, come in all combinations
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e38, -1e38, 0.5, -0.5)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_error_over_the_whole_range(name: str, rng: np.random.Generator) -> None:
    start = int(rng.integers(STRIDE))
    patterns = np.arange(start, 1 << 32, STRIDE, dtype=np.uint64)
    patterns = np.pad(patterns, (0, -len(patterns) % BLOCK), mode="edge").astype(np.uint32)
    swept = Swept(name)
    for x in patterns.view(np.float32).reshape(-1, BLOCK):
        found = swept.block(x)
        assert found.worst <= swept.stated, f"{found.worst:.3g} ULP at {found.where}"
        assert not found.wrong, f"special values are wrong after {x[0]!r}"


@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT16])
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if not name.startswith("to ")])
def test_special_values_and_the_sign_of_zero(name: str, dtype: DType) -> None:
    x = np.resize(dtype.rounded(SPECIAL), BLOCK)
    assert Swept(name, dtype).block(x).wrong == 0
