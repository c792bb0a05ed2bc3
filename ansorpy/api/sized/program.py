"""One program for all sizes of a definition: a few schedules, each for a part of the sizes.

The definition is tuned at each of a few sizes that stand for all.  Each schedule found is then
timed at the others, and a shortest path over the sizes chooses which serves which of them
(DietCode, MLSys'22, also tunes at sizes that stand for others; it chooses by a cost model).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from ansorpy.ir.prove import Proof
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

    Schedules that are refuted for a part of the sizes are left out.  The program is compared with
    those found at their sizes, if it can run here.

    Raises:
        NoValidProgram: All schedules are refuted, or the program differs from those found.
    """
    [largest] = [*group.tasks][-1:]
    whole = replace(largest, dag=group.dag, name=largest.name.partition("[")[0])
    tuner = timer.tuner
    states, ranges, proofs = _unrefuted(_settled(timer, group, found), whole.name)
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


def _settled(timer: Timer, group: TaskGroup, found: Sequence[Chosen]) -> Times:
    """The times of the schedules for all sizes of *group*, with those measured that are chosen."""
    times = Times(timer, group)
    times.add(candidates(timer.tuner, group, found))
    times.settle()
    for n, alike in packed_alike(times):
        times.measure([(number, n) for number in times.add(alike)])
    times.settle()
    return times


def _unrefuted(
    times: Times, name: str
) -> tuple[tuple[State, ...], tuple[Dim, ...], tuple[Proof, ...]]:
    """The best schedules that together serve all sizes, none refuted; the range of each, its proof.

    Raises:
        NoValidProgram: No schedules of *name* are left that do.
    """
    prover, refuted = times.timer.tuner.prover, dict[int, str]()
    for _ in times.candidates:  # each time, at least one more is refuted
        chosen, states, ranges = zip(*_parts(times), strict=True)
        proofs = tuple(map(prover.prove, states))
        refuted = {
            number: proof.refuted[0].message
            for number, proof in zip(chosen, proofs, strict=True) if proof.refuted
        }  # fmt: skip
        if not refuted:
            return states, ranges, proofs
        for number, reason in refuted.items():
            times.refute(number, reason)
        times.settle()
    [reason, *_] = refuted.values()
    raise NoValidProgram(f"{name}: no program for all sizes is left\nrefuted: {reason}")


def _parts(times: Times) -> Iterator[tuple[int, State, Dim]]:
    """Schedules that together serve all sizes: the number of the candidate, and the range of each.

    With several dimensions, the size of the main one decides.
    """
    for low, high, chosen in _ranges(times.dim, times.sizes, times.path()):
        dim = replace(times.dim, low=low, high=high)
        state = times.candidates[chosen].state({times.dim: dim_extent(dim)})
        for part, served in split_below_boxes(state, dim):
            yield chosen, part, served


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
