"""Random schedules of random definitions, interpreted and as machine code."""

from __future__ import annotations

import numpy as np

from ansorpy.errors import ScheduleError
from ansorpy.ir.interpret import run_dag
from ansorpy.schedule.lowering.program import lower
from tests.campaigns.campaign import Campaign
from tests.properties.random_dags import random_state
from tests.proved import assert_proved
from tests.run_native import run_native

__all__ = ["SCHEDULES"]


def _case(rng: np.random.Generator, number: int) -> str:
    state = random_state(rng, int(rng.integers(1, 14)))
    arguments = state.definition.args
    data = {a.name: rng.standard_normal(a.shape).astype(np.float32) for a in arguments}
    expected = run_dag(state.definition, data)
    try:
        lowered = lower(state)
    except ScheduleError:
        return "illegal"
    assert_proved(lowered)
    for got, want in zip(run_native(lowered, data), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    return "native"


SCHEDULES = Campaign("schedules random definitions, and compares with the interpreter", _case)
