"""Programs as JSON texts, and what may stand there instead."""

from __future__ import annotations

import pytest

from ansorpy.errors import ForeignFile, ScheduleError
from ansorpy.schedule.serialize import state_from_json, states_to_json
from ansorpy.schedule.state import State
from tests.measure.definitions import matmul, tiled


def programs() -> list[State]:
    one, other = matmul(), matmul(n=7)
    return [tiled(one, 2), tiled(other, 7), tiled(one, 3)]


def test_programs_come_back() -> None:
    states = programs()
    again = [state_from_json(*texts) for texts in states_to_json(states)]
    assert [state.history for state in again] == [state.history for state in states]
    assert [state.text() for state in again] == [state.text() for state in states]


def test_programs_of_equal_definitions_share_one() -> None:
    first, other, second = (state_from_json(*texts) for texts in states_to_json(programs()))
    assert first.definition is second.definition is not other.definition


def test_other_texts_are_refused() -> None:
    [(definition, steps)] = states_to_json(programs()[:1])
    with pytest.raises(ForeignFile, match="not a description of a compute DAG"):
        state_from_json(steps, steps)
    with pytest.raises(ForeignFile, match="not a recorded schedule"):
        state_from_json(definition, definition)
    with pytest.raises(ScheduleError, match='there is no stage "missing"'):
        state_from_json(definition, '[{"kind": "compute_inline", "stage": "missing"}]')
