"""Which arrays may overlap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import booleans, integers, lists, tuples

from ansorpy.errors import UsageError
from ansorpy.runtime.ports import Port
from ansorpy.runtime.sharing import refuse_overlap
from tests.budget import examples

PLACES = lists(tuples(integers(0, 30), integers(0, 6), booleans()), max_size=6)


@examples(200)
@given(PLACES)
def test_outputs_lie_apart_from_all_others(places: Sequence[tuple[int, int, bool]]) -> None:
    ports = [Port(f"y{n}", (1,), np.dtype(np.float32)) for n in range(len(places))]
    used = [
        (start, start + size, n if is_output else -1)
        for n, (start, size, is_output) in enumerate(places)
    ]
    wrong = {
        f"the array for output 'y{n}' shares memory with another input or output"
        for k, (start, end, n) in enumerate(used)
        for other, (other_start, other_end, _) in enumerate(used)
        if n >= 0 and k != other and max(start, other_start) < min(end, other_end)
    }
    if not wrong:
        refuse_overlap(ports, used)
        return
    with pytest.raises(UsageError) as caught:
        refuse_overlap(ports, used)
    assert caught.value.message in wrong
