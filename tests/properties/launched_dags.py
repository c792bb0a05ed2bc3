"""Random definitions with dimensions, under schedules of GPU rules for one of their sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ansorpy.errors import ScheduleError
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import Preset
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests.properties.random_dags import Types, drawn_sizes, random_sized_definition

__all__ = ["LONGEST", "random_launched_program"]

LONGEST = 60
"""Steps in the range of a dimension: more than a block computes."""


def random_launched_program(
    rng: np.random.Generator, types: Types, target: Target, preset: Preset, longest: int = LONGEST
) -> tuple[State, Lowered] | None:
    """A random schedule for all sizes of a random definition, and its program.

    None if no valid schedule was drawn, or if it binds a whole axis of unknown length to threads.
    """
    definition = random_sized_definition(rng, types, longest)
    sizes = {
        dim: max(size, dim.step) for dim, size in drawn_sizes(definition.dims, rng).items()
    }  # of an empty tensor there is nothing to schedule
    task = Task(dag_at(definition, sizes), target, 1)
    sketch = SketchSampler(task, replace(preset, algorithms=())).draw_one(rng)
    table = sketch.mutate(sketch.sample(16, rng), rng)
    for row in table[sketch.valid(table)][:1]:
        try:
            state = State.replay(definition, sketch.resolve(row).history)
            return state, lower(state)
        except ScheduleError as error:
            assert "must be a number here" in str(error), error
    return None
