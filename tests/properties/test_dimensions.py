"""Random definitions with dimensions under random schedules: one program for every size."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis.strategies import integers

from ansorpy.errors import ScheduleError
from ansorpy.ir.extents import Dim
from ansorpy.ir.rewrite.sizes import dag_at, program_at
from ansorpy.schedule.lowering.program import Lowered, lower
from tests.budget import examples
from tests.properties.random_dags import random_sized_state
from tests.properties.random_elements import TYPES, random_values
from tests.properties.test_schedules import interpreted
from tests.proved import assert_proved
from tests.rounding import Reference
from tests.run_native import run_native


def drawn(dims: tuple[Dim, ...], rng: np.random.Generator) -> dict[Dim, int]:
    """A size for each of *dims*, often an end of its range."""
    return {
        dim: int(rng.choice([dim.low, dim.high, *range(dim.low, dim.high + 1, dim.step)]))
        for dim in dims
    }


@examples(60)
@given(seed=integers(0, 2**32 - 1))
def test_one_program_computes_its_definition_at_every_size(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state = random_sized_state(rng, int(rng.integers(1, 14)), TYPES)
    try:
        lowered = lower(state)
    except ScheduleError:
        return  # a place or a packing that is not legal, or an extent that must be a number
    for _ in range(3):
        sizes = drawn(state.definition.dims, rng)
        dag = dag_at(state.definition, sizes)
        reference = Reference(dag, random_values(dag, rng))
        if reference.reason:
            continue
        data = dict(reference.data)
        here = Lowered(program_at(lowered.run, sizes), lowered.bind)
        assert_proved(here)
        assert max(reference.shares(interpreted(here, data), dag)) <= 1, (sizes, state)
        native = run_native(lowered, data, sizes=sizes)
        assert max(reference.shares(native, dag)) <= 1, (sizes, state)
