"""Schedules of random definitions as C, on teams of threads, against the interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ansorpy.codegen.c.style import Style
from ansorpy.errors import ScheduleError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.loops import Program
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.sizes import Sizes
from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import CPU
from ansorpy.schedule.lowering.program import Lowered, lower
from tests.codegen.c.compiled import STRICT, TARGET, CompiledC, needs_cc
from tests.codegen.programs import Array
from tests.conftest import session_seed
from tests.properties.random_dags import drawn_sizes, random_sized_state, random_state, spread
from tests.properties.random_elements import TYPES, random_values
from tests.properties.random_operators import random_definition
from tests.rounding import Reference
from tests.run_native import run_lowered

pytestmark = needs_cc
BY_HAND, BY_RULES, SIZED = 8, 3, 3


@dataclass(frozen=True)
class Drawn:
    """A random program of *dag*, whose *definition* may be an equivalent; *text* shows it."""

    dag: ComputeDAG
    definition: ComputeDAG
    lowered: Lowered
    text: str

    @property
    def programs(self) -> Iterator[Program]:
        yield self.lowered.run
        if self.lowered.bind is not None:
            yield self.lowered.bind


def by_hand(rng: np.random.Generator) -> Drawn:
    """Random primitives in random order."""
    state = random_state(rng, 14, TYPES, others=0.3)
    return Drawn(state.definition, state.definition, lower(state), state.text())


def with_sizes(rng: np.random.Generator) -> Drawn:
    """Random primitives on a definition with dimensions."""
    state = random_sized_state(rng, 14, TYPES)
    return Drawn(state.definition, state.definition, lower(state), state.text())


def by_rules(rng: np.random.Generator) -> Drawn:
    """A sample of the default preset."""
    dag = spread(random_definition(rng, TYPES), rng)
    sketch = SketchSampler(Task(dag, TARGET, 3), CPU).draw_one(rng)
    table = sketch.sample(32, rng)
    rows = table[sketch.valid(table)]
    if not len(rows):
        raise ScheduleError("no row is valid")
    state = sketch.resolve(rows[0])
    return Drawn(dag, state.definition, lower(state), state.text())


def drawn(seed: int) -> list[Drawn]:
    rng = np.random.default_rng(seed)
    found: list[Drawn] = []
    ways = [by_hand] * BY_HAND + [by_rules] * BY_RULES + [with_sizes] * SIZED
    while len(found) < len(ways):
        try:
            found.append(ways[len(found)](rng))
        except ScheduleError:
            continue  # a schedule that fails with a reason
    return found


STYLES = {
    "scalar": Style(32), "threads": Style(64, "openmp"),
    "vectors": Style(32, "openmp", vectors=True),
}  # fmt: skip


@pytest.mark.parametrize("name", STYLES)
def test_schedules_compute_their_definitions(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    style = STYLES[name]
    made = drawn(session_seed(request.config) + len(name))
    programs = [program for one in made for program in one.programs]
    names = {program: f"k{n}" for n, program in enumerate(programs)}
    flags = ("-O1", *STRICT, *(["-fopenmp"] if style.threads == "openmp" else []))
    compiled = CompiledC({name: p for p, name in names.items()}, tmp_path, style, flags)
    rng = np.random.default_rng(1)
    for one in made:
        sizes = drawn_sizes(one.dag.dims, rng)
        reference = Reference(dag_at(one.dag, sizes), random_values(dag_at(one.dag, sizes), rng))
        threads = int(rng.integers(1, 4))

        def call(
            program: Program, arrays: list[Array], threads: int = threads, sizes: Sizes = sizes
        ) -> None:
            stated = np.array([sizes[dim] for dim in program.dims], np.int64)
            compiled(names[program], [*arrays, stated], threads, sizes)

        found = run_lowered(one.lowered, dict(reference.data), call, sizes=sizes)
        if not reference.reason:
            definition = dag_at(one.definition, sizes)
            assert max(reference.shares(found, definition)) <= 1, (sizes, one.text)
