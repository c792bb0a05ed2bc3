"""Candidates of the operators, drawn by a fixed seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from ansorpy.errors import ScheduleError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from ansorpy.rules.presets import preset_for
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.target import Target
from tests.regression.operators import OPERATORS

__all__ = ["Drawn", "draw", "sampler_of", "task_of"]

SEED = 20


@dataclass(frozen=True)
class Drawn:
    """A candidate: a row of a placed sketch's table, and its programs."""

    sketch: PlacedSketch
    row: npt.NDArray[np.int64]
    lowered: Lowered

    @property
    def decided(self) -> str:
        """The row's values by column."""
        pairs = zip(self.sketch.columns, self.row.tolist(), strict=True)
        return ", ".join(f"{column} = {value}" for column, value in pairs)


def task_of(operator: str, target: Target) -> Task:
    return Task(ComputeDAG.of(OPERATORS[operator]), target, threads=4, name=operator)


@cache
def sampler_of(operator: str, target: Target, preset: str = "default") -> SketchSampler:
    return SketchSampler(task_of(operator, target), preset_for(target, preset))


def draw(operator: str, target: Target, preset: str = "default", count: int = 1) -> list[Drawn]:
    """The first candidate that can be lowered, of each of *count* placed sketches."""
    rng = np.random.default_rng(SEED)
    sketches = sampler_of(operator, target, preset).draw(count, rng)
    return [drawn for s in sketches for drawn in _first_lowered(s, rng)]


def _first_lowered(sketch: PlacedSketch, rng: np.random.Generator) -> Iterator[Drawn]:
    table = sketch.sample(64, rng)
    for row in table[sketch.valid(table)]:
        try:
            yield Drawn(sketch, row, lower(sketch.resolve(row)))
        except ScheduleError:
            continue  # a trial that would fail with a reason
        return
