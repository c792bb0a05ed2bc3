"""Whatever the rules derive for GPUs computes the definition: random programs, interpreted.

The interpreter runs blocks and threads, and finds races, missing barriers and reads of what
nothing wrote, so that a program that passes is one that needs no luck.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, reject
from hypothesis.strategies import integers, sampled_from

from ansorpy.errors import ScheduleError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag, run_program
from ansorpy.ir.loops import Program, Role
from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import ANSOR_CUDA, CUDA, Preset
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests.budget import examples, pairs
from tests.properties.random_elements import random_values
from tests.properties.random_operators import random_definition
from tests.proved import assert_proved
from tests.rules.asking import CUDA as GPU
from tests.rules.gpu_workloads import WORKLOADS

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]


def outputs(program: Program, known: Arrays) -> dict[str, Array]:
    """What the interpreter makes of *program*, by name."""
    arrays = [
        np.full(p.buffer.shape, 77, p.buffer.dtype.numpy) if p.role is Role.OUTPUT
        else known[p.buffer.name]
        for p in program.params
    ]  # fmt: skip
    run_program(program, arrays)
    named = zip(program.params, arrays, strict=True)
    return {p.buffer.name: array for p, array in named if p.role is Role.OUTPUT}


def check(state: State, data: Arrays, expected: list[Array]) -> None:
    """Assert that the bound *state* computes *expected*."""
    lowered = lower(state)
    assert_proved(lowered)
    made = {} if lowered.bind is None else outputs(lowered.bind, data)
    found = outputs(lowered.run, {**data, **made}).values()
    for got, want in zip(found, expected, strict=True):
        tolerance = 1e-4 * max(1.0, float(np.abs(want).max(initial=0)))
        np.testing.assert_allclose(got, want, rtol=0, atol=tolerance, err_msg=str(state))


@pytest.mark.parametrize(("name", "preset"), pairs(WORKLOADS, (ANSOR_CUDA, CUDA)))
def test_random_programs_compute_the_definition(
    name: str, preset: Preset, rng: np.random.Generator
) -> None:
    dag = ComputeDAG.of(WORKLOADS[name])
    data = random_values(dag, rng)
    expected = run_dag(dag, data, dtype=DType.FLOAT64)
    tried = 0
    for sketch in SketchSampler(Task(dag, GPU, 1), preset).draw(1, rng):
        table = sketch.sample(128, rng)
        both = np.concatenate((table, sketch.mutate(table, rng)))
        for row in both[sketch.valid(both)][-1:]:  # a mutated one if any is valid
            check(sketch.resolve(row), data, expected)
            tried += 1
    assert tried


@examples(24)
@given(seed=integers(0, 2**31), preset=sampled_from([ANSOR_CUDA, CUDA]))
def test_programs_of_random_definitions_compute_them(seed: int, preset: Preset) -> None:
    rng = np.random.default_rng(seed)
    dag = random_definition(rng)
    data = random_values(dag, rng)
    expected = run_dag(dag, data, dtype=DType.FLOAT64)
    sketch = SketchSampler(Task(dag, GPU, 1), preset).draw_one(rng)
    table = sketch.mutate(sketch.sample(64, rng), rng)
    rows = table[sketch.valid(table)]
    assume(len(rows))
    try:
        state = sketch.resolve(rows[0])
    except ScheduleError:
        reject()
    check(state, data, expected)
