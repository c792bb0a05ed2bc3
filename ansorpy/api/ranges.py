"""Tune an operator for a range of sizes: a few sizes stand for all, a few schedules serve them.

The definition is tuned at each of the sizes.  Each program found is then timed at the others, and a
shortest path over the sizes chooses which schedule serves which of them (DietCode, MLSys'22, also
tunes at sizes that stand for others; it chooses by a cost model).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, log, sqrt

from ansorpy.api.tuner import Chosen, Tuner
from ansorpy.errors import ScheduleError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.extents import Symbolic, dim_extent, least
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.sizes import Sizes, at, fixed
from ansorpy.ir.symbols import Dim
from ansorpy.ir.task import Task
from ansorpy.measure.records.recording import measure_recorded
from ansorpy.schedule.bounds.axes import number
from ansorpy.schedule.stage import SplitRelation
from ansorpy.schedule.state import State

__all__ = ["MOST_SIZES", "scheduled_for_all", "sizes_for"]

MOST_SIZES = 4
"""Sizes at which a definition is tuned, hence schedules that its kernel has."""


def sizes_for(dims: Sequence[Dim]) -> list[Sizes]:
    """The sizes that stand for all: in geometric steps, the greatest among them.

    >>> n = Dim("n", 1, 512)
    >>> [sizes[n] for sizes in sizes_for([n])]
    [8, 32, 128, 512]
    """
    least_share = max((max(dim.low, 1) / max(dim.high, 1) for dim in dims), default=1.0)
    step = max(least_share, 1 / 4 ** (MOST_SIZES)) ** (1 / MOST_SIZES)
    found: list[Sizes] = []
    for power in range(MOST_SIZES - 1, -1, -1):
        sizes = {dim: _near(dim, dim.high * step**power) for dim in dims}
        if sizes not in found:
            found.append(sizes)
    return found


def _near(dim: Dim, size: float) -> int:
    """The size of *dim* that is nearest to *size*, but not 0 if another one is possible."""
    nearest = round(size / dim.step) * dim.step
    return min(max(nearest, dim.low, dim.step), dim.high)


def scheduled_for_all(tuner: Tuner, dag: ComputeDAG, tasks: Sequence[Task]) -> list[State]:
    """Schedules of *dag*, which has dimensions, that together serve all of their sizes.

    *tasks* are the definition at the sizes of :func:`sizes_for`, tuned.  A definition with several
    dimensions gets one schedule.

    Raises:
        NoValidProgram: No program is known for one of *tasks*.
    """
    chosen = tuner.choose(tasks)
    costs = [_costs(tuner, one, tasks) for one in chosen]
    if len(dag.dims) > 1:
        totals = [sum(cost) for cost in costs]
        return [State.replay(dag, chosen[totals.index(min(totals))].state.history)]
    (dim,) = dag.dims
    reps = [fixed(sizes[dim]) for sizes in sizes_for(dag.dims)]
    parts: list[State] = []
    for low, high, number_ in _ranges(dim, reps, _path(costs)):
        parts += _parts(dag, dim, low, high, chosen[number_].state)
    return parts


def _costs(tuner: Tuner, one: Chosen, tasks: Sequence[Task]) -> list[float]:
    """The logarithm of the seconds of a program's schedule at each size; infinite if it fails."""
    found = []
    for task in tasks:
        seconds = one.median_s if task is one.task else None
        if seconds is None:
            try:
                state = State.replay(task.dag, one.state.history)
            except ScheduleError:
                found.append(inf)
                continue
            [result] = measure_recorded(tuner.runner, tuner.database, task, [state])
            seconds = result.median_s if result.ok else inf
        found.append(log(seconds))
    return found


_CHANGE = log(1.02)
"""What another schedule must gain at the sizes that it serves: it is more code."""


def _path(costs: Sequence[Sequence[float]]) -> list[int]:
    """Which schedule serves each size: the cheapest path."""
    every = range(len(costs))
    best: list[tuple[float, list[int]]] = [(costs[n][0], [n]) for n in every]
    for size in range(1, len(costs[0])):
        best = [
            min((total + costs[n][size] + (_CHANGE if path[-1] != n else 0.0), [*path, n])
                for total, path in best)
            for n in every
        ]  # fmt: skip
    return min(best)[1]


def _ranges(dim: Dim, reps: Sequence[int], path: Sequence[int]) -> list[tuple[int, int, int]]:
    """The sizes that each schedule of *path* serves: from, to, number of the schedule."""
    found: list[tuple[int, int, int]] = []
    for n, ((rep, schedule), after) in enumerate(
        zip(zip(reps, path, strict=True), [*path[1:], -1], strict=True)
    ):
        if schedule == after:
            continue
        low = found[-1][1] + dim.step if found else dim.low
        is_last = n + 1 == len(reps)
        middle = dim.high if is_last else sqrt(rep * reps[n + 1])
        found.append((low, max(rep, int(middle) // dim.step * dim.step), schedule))
    return found


def _parts(dag: ComputeDAG, dim: Dim, low: int, high: int, state: State) -> list[State]:
    """The schedule *state* for the sizes from *low* to *high*, apart for those below its tiles."""
    whole = _scheduled(dag, dim, low, high, state)
    first = next((n for n in range(low, high + 1, dim.step) if _holds_tiles(whole, n)), low)
    if first == low:
        return [whole]
    below = _scheduled(dag, dim, low, first - dim.step, state)
    return [below, _scheduled(dag, dim, first, high, state)]


def _scheduled(dag: ComputeDAG, dim: Dim, low: int, high: int, state: State) -> State:
    part = dag_at(dag, {dim: dim_extent(replace(dim, low=low, high=high))})
    return State.replay(part, state.history)


def _holds_tiles(state: State, size: int) -> bool:
    """True if no tile exceeds the axis that it divides where the dimension has this *size*."""
    for stage in state.stages:
        for relation in stage.relations:
            if not isinstance(relation, SplitRelation):
                continue
            extent = stage.root_extents.get(relation.parent)
            if not isinstance(extent, Symbolic):
                continue
            [own] = extent.dims
            if least(at(extent, {own: size})) < number(sum(relation.factors, ())):
                return False
    return True
