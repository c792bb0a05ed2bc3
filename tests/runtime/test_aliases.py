"""Outputs in the memory of the inputs that they continue: steps beside onnxruntime, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import integers

from tests.budget import examples
from tests.runtime.growing import CAPACITY, assert_grows, decoder, random_case


@examples(60)
@given(seed=integers(0, 2**32 - 1))
def test_random_networks_grow_in_place(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    assert_grows(case, case.compiled(), rng, int(rng.integers(3, 4 * CAPACITY)))


@pytest.mark.parametrize("heads_first", [True, False])
@pytest.mark.parametrize("capacity", [CAPACITY, CAPACITY - 2])
def test_a_decoder_writes_its_new_rows_only(
    heads_first: bool, capacity: int, rng: np.random.Generator
) -> None:
    case = decoder(heads_first=heads_first)
    network = case.cut()
    written = {name for call in network.calls for name in call.outputs}
    assert written.isdisjoint(case.alias)  # they are written in parts
    assert_grows(case, case.compiled(), rng, capacity)
