"""Records that were changed by hand or by age replay, or are refused as foreign: nothing else."""

from __future__ import annotations

import hashlib
import json
from random import Random
from typing import Any

import numpy as np
import pytest

from ansorpy.errors import AnsorpyError, ForeignFile
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.measure.records.rows import Record
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import CPU, CUDA
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_to_json
from ansorpy.target import Target
from tests.codegen.cuda.emulator import TARGET
from tests.properties.random_dags import random_state
from tests.rules.gpu_workloads import WORKLOADS

Steps = list[dict[str, Any]]
WORDS = ("x", "", "local", "shared", "guard", "shift", "peel", "threadIdx.x", "vthread", "unroll")
NUMBERS = (-1000, -1, 0, 1, 2, 3, 7, 1 << 40)


@pytest.fixture(scope="module")
def histories() -> list[tuple[ComputeDAG, Steps]]:
    """Schedules of all kinds, as they are recorded."""
    rng, found = np.random.default_rng(5), list[State]()
    for name in list(WORKLOADS)[:6]:
        for target, rules in ((TARGET, CUDA), (Target.host(), CPU)):
            task = Task(ComputeDAG.of(WORKLOADS[name]), target, 1)
            for sketch in SketchSampler(task, rules).draw(2, rng):
                table = sketch.sample(8, rng)
                found += [sketch.resolve(row) for row in table[sketch.valid(table)][:1]]
    found += [random_state(rng, int(rng.integers(1, 10))) for _ in range(30)]
    return [(state.definition, json.loads(steps_to_json(state.history))) for state in found]


@pytest.mark.parametrize("seed", range(8))
def test_a_changed_record_replays_or_is_foreign(
    histories: list[tuple[ComputeDAG, Steps]], seed: int
) -> None:
    rng, outcomes = Random(seed), set[str]()
    for _ in range(60):
        dag, steps = rng.choice(histories)
        changed = json.dumps(mutated(steps, [op.name for op in dag.ops], rng))
        try:
            assert isinstance(recorded(changed).state(dag), State)
            outcomes.add("replayed")
        except ForeignFile:
            outcomes.add("foreign")
    assert outcomes == {"replayed", "foreign"}


def test_a_fault_of_a_step_is_not_taken_for_a_foreign_file(
    histories: list[tuple[ComputeDAG, Steps]], monkeypatch: pytest.MonkeyPatch
) -> None:
    dag, steps = histories[0]

    def faulty(*_: object) -> State:
        raise KeyError("a fault")

    monkeypatch.setattr(State, "do", faulty)
    with pytest.raises(KeyError, match="a fault"):
        recorded(json.dumps(steps)).state(dag)
    assert not issubclass(KeyError, AnsorpyError)


def recorded(steps: str) -> Record:
    """As a stranger writes it: with the digest of its steps."""
    digest = hashlib.sha256(steps.encode()).hexdigest()
    return Record.model_construct(id=1, steps=steps, digest=digest)


def mutated(steps: Steps, names: list[str], rng: Random) -> Steps:
    """*steps* with one to three of them left out, doubled, exchanged or changed."""
    steps = json.loads(json.dumps(steps))
    words = [*names, *WORDS, *(w for s in steps for w in (s["stage"], s.get("iter", "i")))]
    for _ in range(rng.randint(1, 3)):
        if not steps:
            break
        at, other = rng.randrange(len(steps)), rng.randrange(len(steps))
        match rng.randrange(6):
            case 0:
                del steps[at]
            case 1:
                steps.insert(other, dict(steps[at]))
            case 2:
                steps[at], steps[other] = steps[other], steps[at]
            case _:
                field = rng.choice(list(steps[at]))
                steps[at][field] = changed_value(steps[at][field], words, rng)
    return steps


def changed_value(value: Any, words: list[str], rng: Random) -> Any:
    match value:
        case str():
            return rng.choice(words)
        case int() | None:
            return rng.choice(NUMBERS)
        case list():
            parts = [changed_value(v, words, rng) if rng.random() < 0.5 else v for v in value]
            return rng.choice([[], value[:-1], [*value, *value[:1]], parts])
        case dict():
            return {k: changed_value(v, words, rng) for k, v in value.items()}
    return value
