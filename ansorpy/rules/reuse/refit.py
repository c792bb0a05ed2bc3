"""Refit schedules made for other shapes: find the rows of a space nearest to their numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.rules.placement.rfactor_factors import rfactor_splits
from ansorpy.rules.predicates import is_computed_where_read
from ansorpy.rules.reuse.recover import places_after, replayed
from ansorpy.schedule.decisions import Decision, divisors
from ansorpy.schedule.space import Space, Table
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.base import Step
from ansorpy.schedule.steps.loops import SplitStep

__all__ = ["nearest_rows", "numbers_of", "refitted_sketch"]


_ROWS, _TRIES = 512, 5
_INNER = 4.0
"""How much more a factor weighs than the next outer one."""


def refitted_sketch(sketch: State, steps: Sequence[Step]) -> State | None:
    """*sketch* with its stages placed as in *steps*, which were made for other shapes.

    Factors of rfactor splits become the nearest divisors.  None when *steps* do not begin as the
    sketch does, or their compute locations are impossible here.
    """
    places = places_after(sketch, steps)
    if places is None:
        return None
    begun = [*sketch.history]
    for at, extent in rfactor_splits(sketch).items():
        begun[at] = _divided(begun[at], steps[at], extent)
    placed = replayed(sketch, begun, places)
    return placed if placed is not None and is_computed_where_read(placed) else None


def _divided(step: Step, recorded: Step, extent: int) -> Step:
    """*recorded*, a split in two, with the nearest factor that divides *extent*.

    *step* is the sketch's split.
    """
    assert isinstance(step, SplitStep) and isinstance(recorded, SplitStep)
    [wanted] = recorded.numbers().values()
    options = np.array(divisors(extent), dtype=np.int64)
    nearest = options[np.abs(np.log2(options / wanted)).argmin()]
    return replace(step, factors=(int(nearest),))


def numbers_of(steps: Sequence[Step]) -> dict[str, int]:
    """The numbers in *steps*, keyed by the columns that hold them when they are open."""
    return {name: number for step in steps for name, number in step.numbers().items()}


def nearest_rows(
    space: Space,
    wanted: Mapping[str, int],
    sample: Callable[[int], Table],
    n: int,
    rng: np.random.Generator,
) -> Table:
    """At most *n* valid rows of *space*, those nearest to the *wanted* numbers first.

    Each decision takes the nearest setting of its domain, or the next nearest if constraints
    forbid that combination.  Decisions without *wanted* numbers are sampled.
    """
    ranked = {
        d.name: ranking for d in space.decisions if (ranking := _ranking(d, wanted)) is not None
    }
    found, costs = np.zeros((0, len(space.columns)), dtype=np.int64), np.zeros(0)
    for attempt in range(_TRIES):
        table, cost = sample(_ROWS), np.zeros(_ROWS)
        for name, (rows, distances) in ranked.items():
            at = rng.geometric(0.9 * 0.6**attempt, _ROWS) - 1
            at[0] = 0
            at = np.minimum(at, len(rows) - 1)
            table[:, space.slices[name]] = rows[at]
            cost += distances[at]
        valid = space.valid(table)
        found, costs = np.concatenate([found, table[valid]]), np.concatenate([costs, cost[valid]])
        if len(found) >= n:
            break
    _, first = np.unique(found, axis=0, return_index=True)
    order = first[np.argsort(costs[first], kind="stable")]
    nearest: Table = found[order][:n]
    return nearest


def _ranking(decision: Decision, wanted: Mapping[str, int]) -> tuple[Table, Floats] | None:
    """The settings of *decision*, nearest first, with their distances; None if not *wanted*."""
    if not all(column in wanted for column in decision.columns):
        return None
    rows = decision.domain.rows
    numbers = np.array([wanted[column] for column in decision.columns])
    weights = _INNER ** np.arange(len(numbers))
    distance = (np.abs(np.log2(1 + rows) - np.log2(1 + numbers)) * weights).sum(axis=1)
    order = np.argsort(distance, kind="stable")
    return rows[order], distance[order]
