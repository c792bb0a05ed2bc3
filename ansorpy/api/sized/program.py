"""One program for all sizes of a definition: a few schedules, each for a part of the sizes.

The definition is tuned at each of a few sizes that stand for all.  Each schedule found is then
timed at the others, and a shortest path over the sizes chooses which serves which of them
(DietCode, MLSys'22, also tunes at sizes that stand for others; it chooses by a cost model).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import sqrt

from ansorpy.api.sized.candidates import candidates
from ansorpy.api.sized.same_packing import packed_alike
from ansorpy.api.sized.task_group import TaskGroup
from ansorpy.api.sized.timer import Timer
from ansorpy.api.sized.times import Times
from ansorpy.api.tuner import Chosen, Tuner
from ansorpy.errors import NoValidProgram
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.extents import dim_extent
from ansorpy.ir.prove import Proof
from ansorpy.ir.sizes import Sizes
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

    Schedules that are refuted for a part of the sizes do not serve that part.  The program is
    compared with those found at their sizes, if it can run here.

    Raises:
        NoValidProgram: All schedules fail or are refuted at some size, or the program differs from
            those found.
    """
    [largest] = [*group.tasks][-1:]
    whole = replace(largest, dag=group.dag, name=largest.name.partition("[")[0])
    tuner = timer.tuner
    parts, proofs = _serving(timer, group, found)
    states, ranges = tuple(part.state for part in parts), tuple(part.range for part in parts)
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


@dataclass(frozen=True)
class _Part:
    """A part of the sizes, and the schedule that serves it.

    Args:
        number: That of the candidate.
        range: The sizes of the main dimension.
        stand_for: The sizes of the group that stand for these.
    """

    number: int
    state: State
    range: Dim
    stand_for: tuple[int, ...]


def _serving(
    timer: Timer, group: TaskGroup, found: Sequence[Chosen]
) -> tuple[list[_Part], tuple[Proof, ...]]:
    """The best schedules that together serve all sizes, none refuted, and their proofs.

    If those *found* do not serve all, those predicted for the definition itself are added.

    Raises:
        NoValidProgram: These do not, either.
    """
    times = Times(timer, group)
    tuned = zip(found, group.tasks.values(), strict=True)
    for offered in (tuned, _predicted_directly(timer.tuner, group)):
        if times.add(candidates(timer.tuner, group, offered)):
            _settle(times)
            if served := _unrefuted(times):
                return served
    name = found[0].task.name.partition("[")[0]
    raise NoValidProgram(
        "\n".join((f"{name}: no program for all sizes is left", *times.failures()))
    )


def _predicted_directly(tuner: Tuner, group: TaskGroup) -> Iterator[tuple[Chosen, Sizes]]:
    """Programs of the definition itself that nothing was measured for, where one is correct."""
    for task, sizes in group.tasks.items():
        with suppress(NoValidProgram):
            yield tuner.predicted_directly(task), sizes


def _settle(times: Times) -> None:
    """Measure the schedules that are chosen, with those that read constants alike."""
    times.settle()
    for n, alike in packed_alike(times):
        times.measure([(number, n) for number in times.add(alike)])
    times.settle()


def _unrefuted(times: Times) -> tuple[list[_Part], tuple[Proof, ...]] | None:
    """The best schedules that together serve all sizes, none refuted; None if none are left."""
    known: dict[State, Proof] = {}  # the prover forgets what it could not decide in time
    while path := times.path():
        parts = [*_parts(times, path)]
        for part in parts:
            if part.state not in known:
                known[part.state] = times.timer.tuner.prover.prove(part.state)
        proofs = tuple(known[part.state] for part in parts)
        if not any(proof.refuted for proof in proofs):
            return parts, proofs
        for part, proof in zip(parts, proofs, strict=True):
            if proof.refuted:
                times.refute(part.number, part.stand_for, proof.refuted[0].message)
        times.settle()
    return None


def _parts(times: Times, path: Sequence[int]) -> Iterator[_Part]:
    """The schedules of *path*, which together serve all sizes.

    With several dimensions, the size of the main one decides.
    """
    for low, high, chosen in _ranges(times.dim, times.sizes, path):
        dim = replace(times.dim, low=low, high=high)
        inside = [size for size in times.sizes if low <= size <= high]
        state = times.candidates[chosen].state({times.dim: dim_extent(dim)})
        for part, served in split_below_boxes(state, dim):
            yield _Part(chosen, part, served, _standing_for(served, inside))


def _standing_for(dim: Dim, sizes: Sequence[int]) -> tuple[int, ...]:
    """Those of *sizes* that are in the range of *dim*, or else the one that is next to it."""
    within = tuple(size for size in sizes if dim.low <= size <= dim.high)
    return within or (min(sizes, key=lambda size: abs(size - dim.low)),)


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
