"""The property everything rests on: a scheduled program computes what its definition says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, reject
from hypothesis.strategies import integers

from ansorpy.errors import ScheduleError
from ansorpy.ir.interpret import run_program
from ansorpy.ir.loops import Program, Role
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_from_json, steps_to_json
from tests.budget import examples
from tests.properties.random_dags import random_bound_state, random_state
from tests.properties.random_elements import TYPES, random_values
from tests.proved import assert_proved
from tests.rounding import Reference
from tests.run_native import run_native

Arrays = dict[str, np.ndarray]


def inputs_of(state: State, rng: np.random.Generator) -> Arrays:
    return {a.name: rng.standard_normal(a.shape).astype(np.float32) for a in state.definition.args}


def interpret(program: Program, known: Arrays) -> Arrays:
    """Run *program* on *known* arrays; returns its outputs by name."""
    arrays = []
    for param in program.params:
        buffer = param.buffer
        empty = np.full(buffer.shape, np.nan if buffer.dtype.is_float else 99, buffer.dtype.numpy)
        arrays.append(empty if param.role is Role.OUTPUT else known[buffer.name].copy())
    run_program(program, arrays)
    named = zip(program.params, arrays, strict=True)
    return {p.buffer.name: array for p, array in named if p.role is Role.OUTPUT}


def interpreted(lowered: Lowered, data: Arrays) -> list[np.ndarray]:
    bound = interpret(lowered.bind, data) if lowered.bind is not None else {}
    return list(interpret(lowered.run, data | bound).values())


@examples(60)
@given(seed=integers(0, 2**32 - 1))
def test_every_schedule_computes_its_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state = random_state(rng, int(rng.integers(1, 14)), TYPES, others=0.3)
    reference = Reference(state.definition, random_values(state.definition, rng))
    assume(not reference.reason)
    try:
        lowered = lower(state)
    except ScheduleError:
        assert not is_legal(state)
        return  # a place or a packing that is not legal; the message is tested elsewhere
    assert is_legal(state)
    assert_proved(lowered)
    found = interpreted(lowered, dict(reference.data))
    assert max(reference.shares(found, state.definition)) <= 1


def is_legal(state: State) -> bool:
    try:
        return not state.check().undecided
    except ScheduleError as error:
        assert error.step is not None
        return False


@examples(150)
@given(seed=integers(0, 2**32 - 1))
def test_what_is_legal_on_a_gpu_computes_its_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state = random_bound_state(rng, int(rng.integers(1, 9)), TYPES, others=0.3)
    assume(is_legal(state))
    reference = Reference(state.definition, random_values(state.definition, rng))
    assume(not reference.reason)
    lowered = lower(state)
    assert_proved(lowered)
    found = interpreted(lowered, dict(reference.data))
    assert max(reference.shares(found, state.definition)) <= 1


@examples(40)
@given(seed=integers(0, 2**32 - 1))
def test_machine_code_computes_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state = random_state(rng, int(rng.integers(1, 14)), TYPES, others=0.3)
    reference = Reference(state.definition, random_values(state.definition, rng))
    assume(not reference.reason)
    try:
        lowered = lower(state)
    except ScheduleError:
        reject()
    found = run_native(lowered, dict(reference.data))
    assert max(reference.shares(found, state.definition)) <= 1


@pytest.mark.parametrize("seed", range(20))
def test_records_replay_to_the_same_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state = random_state(rng, 12)
    again = State.replay(state.definition, steps_from_json(steps_to_json(state.history)))
    assert again.text() == state.text()
    assert str(again.history) == str(state.history)
