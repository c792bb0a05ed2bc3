"""A small grid whose times are a formula."""

from __future__ import annotations

import numpy as np

from ansorpy.ir.task import Task
from ansorpy.ir.text.serialize import dag_to_dict
from ansorpy.measure.result import TrialKind
from ansorpy.measure.task_conditions import conditions_of
from ansorpy.schedule.steps.records import steps_to_json
from benchmarks.spaces.cut import cut_down
from benchmarks.spaces.grid import PENDING, Grid, GridHeader
from tests.search.runners import true_seconds
from tests.search.tasks import sampler

KINDS = ("pending", *TrialKind)
OK = KINDS.index(TrialKind.OK)
CRASH = KINDS.index(TrialKind.CRASH)


def grid_of(task: Task, points: int = 60, number: int = 0) -> Grid:
    """A complete grid of *task*: every seventh point crashed, the fastest five were timed again."""
    sketch = sampler(task).place(number, np.random.default_rng(0))
    found = cut_down(sketch, points)
    state = sketch.space.state
    seconds = np.array([true_seconds(task, sketch.resolve(row)) for row in found.rows])
    kinds = np.full(len(seconds), OK, dtype=np.uint8)
    kinds[::7], seconds[::7] = CRASH, np.nan
    again = np.argsort(seconds)[:50]
    again = again[np.isfinite(seconds[again])]
    header = GridHeader(
        **conditions_of(task), dag=dag_to_dict(task.dag), definition=sketch.definition,
        scheduled=None,
        steps=steps_to_json(state.history), placed_steps=len(sketch.placed.history),
        sketch_steps=sketch.sketch_steps, sketch=number, preset=sketch.preset.name,
        cut=dict(found.kept),
        sizes={d.name: len(d.domain.rows) for d in sketch.space.decisions},
        refused=found.refused, kinds=KINDS, default_s=1.0, reasons={"crash": "it crashed"},
        machine="a formula", command="", date="2000-01-01",
    )  # fmt: skip
    assert PENDING == 0
    return Grid(
        header, rows=found.rows, kinds=kinds, seconds=seconds,
        clock=np.where(np.isfinite(seconds), 1e-3, np.nan), again_rows=again,
        again=np.tile(seconds[again][:, None], (1, 10)), again_clock=np.full(len(again), 1e-3),
    )  # fmt: skip
