"""Random schedules of random definitions, as machine code and in the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansorpy.errors import ScheduleError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.interpret import run_program
from ansorpy.ir.rewrite.sizes import dag_at, program_at
from ansorpy.ir.sizes import Sizes
from ansorpy.ir.task import Task
from ansorpy.measure.proofs.handlers import proof_of
from ansorpy.rules.algorithms.base import definitions
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import ANSOR_CUDA, CUDA, preset_for
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.state import History, State
from ansorpy.target import Target
from tests.campaigns.campaign import Campaign, Tally
from tests.properties.launched_dags import random_launched_program
from tests.properties.random_dags import (
    drawn_sizes,
    random_bound_state,
    random_sized_state,
    random_state,
    spread,
)
from tests.properties.random_elements import TYPES, random_values
from tests.properties.random_operators import random_definition
from tests.proved import assert_proved
from tests.rounding import Reference
from tests.run_native import run_lowered, run_native

__all__ = ["GPU_SCHEDULES", "SCHEDULES", "from_rules", "is_legal", "legal"]

Array = NDArray[Any]
Arrays = dict[str, Array]
Run = Callable[[Lowered, Arrays, Sizes], list[Array]]

_SKETCHES, _ROWS = 2, 4
"""Sketches placed for a definition, whose derivation costs as much as some schedules, and rows."""
_DRAWS = 3
_SIZES = 3
_OTHERS = 0.5
"""Share of random operators among the definitions that get random primitives."""
_GPUS = ("sm_80", "sm_90")


@dataclass(frozen=True)
class _Checked:
    """A definition with data and the results that every schedule of it must have."""

    reference: Reference
    run: Run
    seen: Tally
    where: str

    def check(self, state: State, kind: str) -> None:
        """Compare what *state* computes, and count it."""
        if not is_legal(state):
            self.seen.kinds["illegal"] += 1
            return
        lowered = lower(state)
        assert_proved(lowered)
        self.compare(lowered, state.definition, state.history, kind, {})

    def compare(
        self, lowered: Lowered, definition: ComputeDAG, history: History, kind: str, sizes: Sizes
    ) -> None:
        """Compare what *lowered* computes of *definition* at *sizes*, and count it."""
        dag = self.reference.dag
        found = self.run(lowered, dict(self.reference.data), sizes)
        if self.reference.reason:
            self.seen.kinds[f"not compared, {self.reference.reason}"] += 1
            return
        shares = self.reference.shares(found, definition)
        for output, share in zip(dag.outputs, shares, strict=True):
            assert share <= 1, f"{output.name}: {share:.3g} of its bound\n{history}"
            if output.dtype.is_float:
                self.seen.note(f"share of its bound, {output.dtype.value}", share, self.where)
        self.seen.kinds[f"{kind}, {dag.args[0].dtype.value}"] += 1


def _checked(dag: ComputeDAG, rng: np.random.Generator, run: Run, number: int) -> _Checked:
    return _Checked(Reference(dag, random_values(dag, rng)), run, Tally(), f"case {number}")


def _native(rng: np.random.Generator, number: int) -> Tally:
    threads = int(rng.integers(1, 3))

    def run(lowered: Lowered, data: Arrays, sizes: Sizes) -> list[Array]:
        return run_native(lowered, data, threads, sizes=sizes)

    if number % 8 == 1:
        return _at_sizes(rng, run, number)
    if number % 2:
        state = legal(lambda: random_state(rng, int(rng.integers(1, 14)), TYPES, _OTHERS))
        checked = _checked(state.definition, rng, run, number)
        checked.check(state, "primitives")
        return checked.seen
    dag = spread(random_definition(rng, TYPES, more=0.5), rng)
    checked = _checked(dag, rng, run, number)
    for state in from_rules(dag, Target.host(), threads, rng):
        checked.check(state, "rules")
    return checked.seen


def _at_sizes(rng: np.random.Generator, run: Run, number: int) -> Tally:
    """One program of a definition with dimensions, proved for all sizes and run at some."""
    state = legal(lambda: random_sized_state(rng, int(rng.integers(1, 14)), TYPES))
    seen = Tally()
    try:
        lowered = lower(state)
    except ScheduleError:
        seen.kinds["illegal"] += 1
        return seen
    _compare_at_sizes(rng, state, lowered, run, seen, number)
    return seen


def _compare_at_sizes(
    rng: np.random.Generator, state: State, lowered: Lowered, run: Run, seen: Tally, number: int
) -> None:
    """Prove *lowered*, the program of *state*, for all sizes, and compare what it computes."""
    proof = proof_of(lowered)
    assert not proof.refuted, proof.refuted[0]
    for _ in range(_SIZES):
        sizes = drawn_sizes(state.definition.dims, rng)
        dag = dag_at(state.definition, sizes)
        checked = _Checked(Reference(dag, random_values(dag, rng)), run, seen, f"case {number}")
        checked.compare(lowered, dag, state.history, "sizes", sizes)


def _interpreted(lowered: Lowered, data: Arrays, sizes: Sizes) -> list[Array]:
    return run_lowered(lowered, data, run_program, sizes=sizes)


def _launched_at_sizes(rng: np.random.Generator, number: int) -> Tally:
    """One program of GPU rules for a definition with dimensions, run at some of its sizes."""
    target, seen = Target.parse(_GPUS[int(rng.integers(len(_GPUS)))]), Tally()
    preset = (ANSOR_CUDA, CUDA)[int(rng.integers(2))]
    found = random_launched_program(rng, TYPES, target, preset)
    if found is None:
        seen.kinds["no schedule for all sizes"] += 1
        return seen
    state, lowered = found
    _compare_at_sizes(rng, state, lowered, _interpreted_at, seen, number)
    return seen


def _interpreted_at(lowered: Lowered, data: Arrays, sizes: Sizes) -> list[Array]:
    return _interpreted(Lowered(program_at(lowered.run, sizes), lowered.bind), data, {})


def _on_gpu(rng: np.random.Generator, number: int) -> Tally:
    if number % 8 == 1:
        return _launched_at_sizes(rng, number)
    if number % 2:
        state = legal(lambda: random_bound_state(rng, int(rng.integers(1, 9)), TYPES, _OTHERS))
        checked = _checked(state.definition, rng, _interpreted, number)
        checked.check(state, "bindings")
        return checked.seen
    dag, name = random_definition(rng, TYPES, more=0.4), _GPUS[int(rng.integers(len(_GPUS)))]
    checked = _checked(dag, rng, _interpreted, number)
    for state in from_rules(dag, Target.parse(name), 1, rng):
        checked.check(state, f"rules for {name}")
    return checked.seen


def legal(draw: Callable[[], State]) -> State:
    """What *draw* gives; again if it is illegal, but not for ever."""
    state = draw()
    for _ in range(_DRAWS):
        if is_legal(state):
            break
        state = draw()
    return state


def is_legal(state: State) -> bool:
    try:
        return not state.check().undecided
    except ScheduleError:
        return False


def from_rules(
    dag: ComputeDAG, target: Target, threads: int, rng: np.random.Generator
) -> Iterator[State]:
    """Programs that a search may draw: a definition, sketches, places, and mutated sizes."""
    preset = preset_for(target)
    every = definitions(dag, preset.algorithms, target.with_threads(threads), "default")
    drawn = every[int(rng.integers(len(every)))].dag
    sampler = SketchSampler(Task(drawn, target, threads), replace(preset, algorithms=()))
    for _ in range(_SKETCHES):
        sketch = sampler.draw_one(rng)
        table = sketch.mutate(sketch.sample(32, rng), rng)
        for row in table[sketch.valid(table)][:_ROWS]:
            yield sketch.resolve(row)


SCHEDULES = Campaign(
    "schedules random definitions, and compares with the interpreter", _native, short=10
)
GPU_SCHEDULES = Campaign("the same for GPUs, in the interpreter of programs", _on_gpu, short=6)
