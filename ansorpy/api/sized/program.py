"""One program for all sizes of a definition: a few schedules, each for a part of the sizes.

The definition is tuned at each of a few sizes that stand for all.  Each schedule found is then
timed at the others, and a shortest path over the sizes chooses which serves which of them
(DietCode, MLSys'22, also tunes at sizes that stand for others; it chooses by a cost model).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

from ansorpy.api.sized.candidates import candidates
from ansorpy.api.sized.same_packing import packed_alike
from ansorpy.api.sized.task_group import TaskGroup
from ansorpy.api.sized.timer import Timer
from ansorpy.api.sized.times import Times
from ansorpy.api.tuner import Chosen
from ansorpy.errors import NoValidProgram
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.extents import dim_extent
from ansorpy.ir.symbols import Dim
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import ComputeOp
from ansorpy.measure.build.builder import task_symbol
from ansorpy.measure.build.built import Built
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.measure.check.compare import compare, tolerance
from ansorpy.measure.check.flips import may_flip, without_flips
from ansorpy.measure.devices import devices_of
from ansorpy.schedule.lowering.dispatch import dispatched, split_below_boxes
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.state import State

__all__ = ["chosen_for_all", "lowered_parts", "require_equal"]


def chosen_for_all(timer: Timer, group: TaskGroup, found: Sequence[Chosen]) -> Chosen:
    """The program of *group* for all of its sizes, from those *found* for its tasks.

    It is compared with these at their sizes, if it can run here.

    Raises:
        NoValidProgram: A program is refuted for all sizes, or differs from those found.
    """
    [largest] = [*group.tasks][-1:]
    whole = replace(largest, dag=group.dag, name=largest.name.partition("[")[0])
    tuner = timer.tuner
    states, ranges = _states(timer, group, found)
    proofs = tuple(tuner.prover.prove(state) for state in states)
    refuted = [reason for proof in proofs for reason in proof.refuted]
    if refuted:
        raise NoValidProgram(f"a program for all sizes is refuted: {refuted[0].message}")
    built = build_lowered(
        lowered_parts(group.dag, states, ranges), whole.target, task_symbol(whole),
        prefetch=whole.reuse_distance_bytes > 0,
    )  # fmt: skip
    if whole.target.runs_on_host():
        for chosen, sizes in zip(found, group.tasks.values(), strict=True):
            require_equal(built.at(sizes), chosen.built, chosen.task, tuner.request.seed)
    return Chosen(whole, states, built, None, proofs, ranges)


def lowered_parts(
    definition: ComputeDAG, states: Sequence[State], ranges: Sequence[Dim]
) -> Lowered:
    """The program of *definition* with the schedules *states*, each for a range of its sizes.

    Raises:
        UsageError: The ranges are not consecutive.
    """
    if len(states) == 1:
        return lower(states[0])
    parts = zip(ranges, map(lower, states), strict=True)
    return dispatched(definition, [*parts])


def _states(
    timer: Timer, group: TaskGroup, found: Sequence[Chosen]
) -> tuple[tuple[State, ...], tuple[Dim, ...]]:
    """Schedules that together serve all sizes of *group*, and the range of each.

    With several dimensions, the size of the main one decides.
    """
    times = Times(timer, group)
    times.add(candidates(timer.tuner, group, found))
    times.settle()
    for n, alike in packed_alike(times):
        times.measure([(number, n) for number in times.add(alike)])
    times.settle()
    parts: list[tuple[State, Dim]] = []
    for low, high, chosen in _ranges(times.dim, times.sizes, times.path()):
        dim = replace(times.dim, low=low, high=high)
        state = times.candidates[chosen].state({times.dim: dim_extent(dim)})
        parts += split_below_boxes(state, dim)
    return tuple(state for state, _ in parts), tuple(part for _, part in parts)


def _ranges(dim: Dim, sizes: Sequence[int], path: Sequence[int]) -> list[tuple[int, int, int]]:
    """The sizes that each schedule of *path* serves: from, to, number of the schedule.

    Between two of *sizes*, the schedules change in the (geometric) middle.
    """
    found: list[tuple[int, int, int]] = []
    low = dim.low
    for n, (size, schedule) in enumerate(zip(sizes, path, strict=True)):
        if n + 1 == len(path):
            found.append((low, dim.high, schedule))
        elif schedule != path[n + 1]:
            middle = int(sqrt(size * sizes[n + 1])) // dim.step * dim.step
            found.append((low, max(size, middle), schedule))
            low = found[-1][1] + dim.step
    return found


def require_equal(built: Built, reference: Built, task: Task, seed: int) -> None:
    """Check that *built* computes of *task* what *reference* does.

    Raises:
        NoValidProgram: An output differs by more than rounding.
    """
    opened = devices_of(task.target).open_task(task, seed)
    found = []
    for one in (built, reference):
        with opened.load(one) as candidate:
            candidate.check()
        found.append([array.copy() for array in opened.results()])
    for op, got, want in zip(task.dag.outputs, *found, strict=True):
        assert isinstance(op, ComputeOp)
        allowed = tolerance(task.dag, op)
        if may_flip(task.dag, op):
            got = without_flips(got, want, allowed, 0.0)
        result = compare(op.name, got, want, allowed)
        if not result.ok:
            raise NoValidProgram(f"the kernel for all sizes is wrong: {result.reason}")
