"""Map recorded schedules back to placed sketches and rows of their tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ansorpy.errors import ScheduleError
from ansorpy.schedule.space import Space, Table
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.base import Step
from ansorpy.schedule.steps.place import ComputeAtStep, ComputeInlineStep, ComputeRootStep

__all__ = [
    "Skeleton", "placed_like", "places_after", "replayed", "rows_of", "skeleton_of",
]  # fmt: skip

Skeleton: TypeAlias = tuple[Step, ...]

_PLACES = (ComputeAtStep, ComputeInlineStep, ComputeRootStep)


def skeleton_of(steps: Sequence[Step]) -> Skeleton:
    """A key that all schedules of one placed sketch share, and few others have."""
    return tuple(step.skeleton() for step in steps)


def placed_like(sketch: State, steps: Sequence[Step]) -> State | None:
    """*sketch* with its stages placed and its drawn numbers chosen as in *steps*.

    None if *steps* do not begin as the sketch does, or if their placement steps fail on it.
    """
    places = places_after(sketch, steps)
    if places is None:
        return None
    recorded = steps[: len(sketch.history)]
    pairs = zip(sketch.history, recorded, strict=True)
    return replayed(sketch, [b if _was_drawn(a, b) else a for a, b in pairs], places)


def places_after(sketch: State, steps: Sequence[Step]) -> Sequence[Step] | None:
    """The steps after those of *sketch* that place stages; None if *steps* begin differently."""
    at = end = len(sketch.history)
    if skeleton_of(sketch.history) != skeleton_of(steps[:at]):
        return None
    while end < len(steps) and isinstance(steps[end], _PLACES):
        end += 1
    return steps[at:end]


def replayed(sketch: State, begun: Sequence[Step], places: Sequence[Step]) -> State | None:
    """*sketch* with its own steps replaced by *begun*, then *places*; None if that fails."""
    if not places and all(a is b for a, b in zip(begun, sketch.history, strict=True)):
        return sketch
    try:
        return State.replay(sketch.definition, [*begun, *places])
    except ScheduleError:
        return None


def _was_drawn(step: Step, recorded: Step) -> bool:
    """Whether *recorded* is *step* with a number that a placement rule replaced."""
    return step != recorded and step.resolve(recorded.numbers()) == step


def rows_of(
    space: Space, schedules: Sequence[Sequence[Step]]
) -> tuple[Table, npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """The rows of *space* for *schedules*, the schedule of each row, and whether it is valid.

    A schedule that is not a program of the space has no row.
    """
    rows, members = [], []
    for number, steps in enumerate(schedules):
        row = _row(space, steps)
        if row is not None:
            rows.append(row)
            members.append(number)
    table = np.array(rows, dtype=np.int64).reshape(len(rows), len(space.columns))
    return table, np.array(members, dtype=np.intp), space.within(table) & space.valid(table)


def _row(space: Space, steps: Sequence[Step]) -> list[int] | None:
    """The column values that turn the space's state into the program of *steps*, if any."""
    history = space.state.history
    if len(history) != len(steps):
        return None
    values: dict[str, int] = {}
    for step, recorded in zip(history, steps, strict=True):
        if step != recorded:
            numbers = recorded.numbers()
            if step.resolve(numbers) != recorded:
                return None
            values.update(numbers)
    return [values[column] for column in space.columns]
