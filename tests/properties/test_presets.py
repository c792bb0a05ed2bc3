"""Random definitions under random programs of the presets; and that every rule takes part."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, reject
from hypothesis.strategies import integers, sampled_from

from ansorpy.errors import ScheduleError
from ansorpy.ir.task import Task
from ansorpy.rules.derive import derive
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import ANSOR_CPU, CPU, Preset
from ansorpy.schedule.lowering.program import lower
from ansorpy.target import Target
from tests.budget import examples
from tests.properties.random_dags import spread
from tests.properties.random_elements import TYPES, random_values
from tests.properties.random_operators import random_definition
from tests.proved import assert_proved
from tests.rounding import Reference
from tests.run_native import run_native


@examples(40)
@given(seed=integers(0, 2**31), preset=sampled_from([CPU, CPU, ANSOR_CPU]), threads=integers(1, 2))
def test_programs_of_random_definitions_compute_them(
    seed: int, preset: Preset, threads: int
) -> None:
    rng = np.random.default_rng(seed)
    dag = spread(random_definition(rng, TYPES), rng)
    data = random_values(dag, rng)
    reference = Reference(dag, data)
    assume(not reference.reason)
    sketch = SketchSampler(Task(dag, Target.host(), threads), preset).draw_one(rng)
    table = sketch.mutate(sketch.sample(32, rng), rng)
    rows = table[sketch.valid(table)]
    assume(len(rows))
    state = sketch.resolve(rows[0])
    try:
        lowered = lower(state)
    except ScheduleError:
        reject()  # a trial that fails with a reason: no layout for a packed constant, say
    assert not state.check().undecided
    assert_proved(lowered)
    found = run_native(lowered, data, threads)
    assert max(reference.shares(found, state.definition)) <= 1, state


@examples(25)
@given(seed=integers(0, 2**31), name=sampled_from(["sm_80", "sm_90"]))
def test_schedules_of_random_definitions_are_legal_on_gpus(seed: int, name: str) -> None:
    rng = np.random.default_rng(seed)
    task = Task(random_definition(rng, TYPES), Target.parse(name), 1)
    sketch = SketchSampler(task).draw_one(rng)
    table = sketch.sample(16, rng)
    rows = table[sketch.valid(table)]
    assume(len(rows))
    assert not sketch.resolve(rows[0]).check().undecided


def test_every_sketch_rule_of_the_default_preset_is_drawn() -> None:
    target = Target.host()
    # Chains take Winograd's transforms first; the rules for marked axes and for parts of attention
    # have tests of their own.
    missing = {type(rule).__name__ for rule in CPU.sketch}
    missing -= {"SimplifyComputeWithConstTensor", "PartsAtBlock"}
    missing -= _needs_dots(target)
    for seed in range(150):
        dag = random_definition(np.random.default_rng(seed))
        missing -= {row.rule for row in derive(dag, target, CPU).trace if row.made}
        if not missing:
            break
    assert not missing


def _needs_dots(target: Target) -> set[str]:
    """DotWords applies on machines with dot product instructions only."""
    return set() if "vnni" in target.features or "dotprod" in target.features else {"DotWords"}
