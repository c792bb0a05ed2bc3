"""Move a stage to another loop: the mutation that changes the placed sketch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.errors import ScheduleError
from ansorpy.rules.placement.compute_location import is_movable, locations
from ansorpy.rules.predicates import is_computed_where_read
from ansorpy.schedule.space import Space, Table
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.place import ComputeAtStep

__all__ = ["MutateComputeLocation", "carry_over"]


@dataclass(frozen=True)
class MutateComputeLocation:
    """Move one stage that ChangeComputeLocation placed to another of its candidate loops.

    Compute locations are part of a placed sketch, so the mutation makes a new one, to which whole
    tables are carried over column by column.
    Source: TVM's MutateComputeLocation: only attached stages move, and they stay attached.
    Differs: the candidates are those of the stage at the root, so it can move inwards too.
    """

    def move(self, state: State, rng: np.random.Generator, sketch_steps: int = 0) -> State | None:
        """A neighbour of the placed *state*; None if no stage can move.

        The first *sketch_steps* steps are its sketch, which does not change.
        """
        movable = [
            at for at, step in enumerate(state.history)
            if at >= sketch_steps and isinstance(step, ComputeAtStep)
            and state.stage(step.stage).attach is not None
            and is_movable(state, state.stage(step.stage))
        ]  # fmt: skip
        if not movable:
            return None
        return _moved(state, int(rng.choice(movable)), rng)


def _moved(state: State, number: int, rng: np.random.Generator) -> State | None:
    """*state* with another target of step *number*, a compute_at; None if there is none."""
    name = state.history[number].stage
    free = state.compute_root(name)
    current = state.stage(name).attach
    others = [at for at in locations(free, free.stage(name)) if at != current]
    if not others:
        return None
    chosen = others[int(rng.integers(len(others)))]
    steps = [*state.history]
    steps[number] = ComputeAtStep(name, chosen.stage, chosen.iter)
    try:
        moved = State.replay(state.definition, steps)
    except ScheduleError:
        return None
    return moved if is_computed_where_read(moved) else None


def carry_over(old: Space, table: Table, new: Space, rng: np.random.Generator) -> Table:
    """Convert *table* of *old* to a table of *new*: the values of equal decisions are kept.

    A decision of *new* that *old* lacks, or that has another domain there, is sampled.
    """
    moved = new.sample(len(table), rng)
    before = {d.name: d for d in old.decisions}
    for decision in new.decisions:
        known = before.get(decision.name)
        if known is not None and known == decision:
            moved[:, new.slices[decision.name]] = table[:, old.slices[decision.name]]
    return moved
