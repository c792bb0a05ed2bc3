"""One program for all sizes of a definition: a few schedules, each for a part of the sizes.

The definition is tuned at each of a few sizes that stand for all.  Each schedule found is then
timed at the others, and a shortest path over the sizes chooses which serves which of them
(DietCode, MLSys'22, also tunes at sizes that stand for others; it chooses by a cost model).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import inf, log, sqrt

from ansorpy.api.same_packing import packed_alike
from ansorpy.api.task_group import MOST_SIZES, TaskGroup
from ansorpy.api.timings import Timings
from ansorpy.api.tuner import Chosen, Tuner
from ansorpy.errors import NoValidProgram, ScheduleError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.extents import dim_extent
from ansorpy.ir.loops import Role
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.sizes import Sizes, fixed
from ansorpy.ir.symbols import Dim
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import ComputeOp
from ansorpy.ir.text.printer import text
from ansorpy.ir.text.serialize import structural_hash
from ansorpy.measure.build.builder import task_symbol
from ansorpy.measure.build.built import Built
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.measure.check.compare import compare, tolerance
from ansorpy.measure.check.flips import may_flip, without_flips
from ansorpy.measure.devices import devices_of
from ansorpy.rules.algorithms.base import definitions_for_all
from ansorpy.rules.presets import preset_for
from ansorpy.schedule.lowering.dispatch import dispatched, split_below_boxes
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.state import History, State

__all__ = ["chosen_for_all", "lowered_parts", "require_equal"]


def chosen_for_all(timings: Timings, group: TaskGroup, found: Sequence[Chosen]) -> Chosen:
    """The program of *group* for all of its sizes, from those *found* for its tasks.

    It is compared with these at their sizes, if it can run here.

    Raises:
        NoValidProgram: A program is refuted for all sizes, or differs from those found.
    """
    [largest] = [*group.tasks][-1:]
    whole = replace(largest, dag=group.dag, name=largest.name.partition("[")[0])
    tuner = timings.tuner
    states, ranges = _states(timings, group, found)
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


@dataclass(frozen=True)
class _Candidate:
    """A schedule of *definition*, which computes the workload at all sizes."""

    definition: ComputeDAG
    history: History

    def state(self, sizes: Sizes) -> State:
        """The schedule where the dimensions in *sizes* have these sizes.

        Raises:
            ScheduleError: It does not apply there.
        """
        return State.replay(dag_at(self.definition, sizes), self.history)

    @property
    def key(self) -> tuple[int, str]:
        """Equal for equal candidates."""
        return id(self.definition), str(self.history)

    @property
    def applies(self) -> bool:
        """True if the schedule is legal for the definition at all sizes at once."""
        try:
            return bool(self.packing)
        except ScheduleError:
            return False

    @cached_property
    def packing(self) -> tuple[str, int]:
        """A text that is equal for candidates with the same packed constants, and their bytes."""
        bind = lower(self.state({})).bind
        if bind is None:
            return "", 0
        made = [param.buffer for param in bind.params if param.role is Role.OUTPUT]
        return text(bind), sum(fixed(buffer.bytes) for buffer in made)


def _states(
    timings: Timings, group: TaskGroup, found: Sequence[Chosen]
) -> tuple[tuple[State, ...], tuple[Dim, ...]]:
    """Schedules that together serve all sizes of *group*, and the range of each.

    With several dimensions, the size of the main one decides.
    """
    times = _Times(timings, group)
    times.add(_candidates(timings.tuner, group, found))
    times.settle()
    for number, candidates in _packed_alike(times):
        times.measure([(n, number) for n in times.add(candidates)])
    times.settle()
    parts: list[tuple[State, Dim]] = []
    path = _path(times.candidates, times.costs(doubt=_DOUBT))
    for low, high, chosen in _ranges(times.dim, times.sizes, path):
        dim = replace(times.dim, low=low, high=high)
        state = times.candidates[chosen].state({times.dim: dim_extent(dim)})
        parts += split_below_boxes(state, dim)
    return tuple(state for state, _ in parts), tuple(part for _, part in parts)


_DOUBT = log(1.5)
"""How much faster a schedule must be expected to be than another one that was measured."""


class _Times:
    """What the program for all sizes of each candidate takes at each size of a group.

    It is measured where the candidate is chosen.  Until then, it is expected to take as long as the
    program for that size only, or what is predicted, corrected by how wrong the model is about the
    candidate elsewhere.
    """

    def __init__(self, timings: Timings, group: TaskGroup) -> None:
        self.timings = timings
        self.candidates: list[_Candidate] = []
        self.tasks = group.every
        self.dim = group.dag.main_dim
        self._programs: list[State] = []
        self._predicted: list[list[float]] = []
        self._recorded: list[list[float | None]] = []
        self._measured: list[list[float | None]] = []
        self._general = [group.for_all(task) for task in self.tasks]
        self._shares = group.shares(self.tasks)

    def add(self, candidates: Iterable[_Candidate]) -> list[int]:
        """Add *candidates*, except those that are known, with what is recorded of them.

        Returns the numbers of all of them.
        """
        known = {candidate.key: n for n, candidate in enumerate(self.candidates)}
        found = []
        for candidate in candidates:
            number = known.setdefault(candidate.key, len(self.candidates))
            found.append(number)
            if number == len(self.candidates):
                self._append(candidate)
        return found

    def _append(self, candidate: _Candidate) -> None:
        program = candidate.state({})
        columns = [self._known(candidate, *item) for item in self.tasks.items()]
        self.candidates.append(candidate)
        self._programs.append(program)
        self._predicted.append([predicted for predicted, _ in columns])
        self._recorded.append([recorded for _, recorded in columns])
        recorded = [self.timings.recorded(task, [program]) for task in self._general]
        self._measured.append([seconds for [seconds] in recorded])

    def _known(self, candidate: _Candidate, task: Task, sizes: Sizes) -> tuple[float, float | None]:
        """Predicted and recorded seconds of the program for *sizes* only."""
        state = _state(candidate, sizes)
        if state is None:
            return inf, inf
        [predicted] = self.timings.tuner.predicted(task, [state])
        [recorded] = self.timings.recorded(task, [state])
        return predicted, recorded

    def settle(self) -> None:
        """Measure the chosen schedules until those that are then chosen are measured."""
        while self.measure([*zip(self.chosen(), range(len(self.tasks)), strict=True)]):
            pass

    def chosen(self) -> list[int]:
        """For each task, the number of the candidate that is chosen so far."""
        path = dict(zip(self.sizes, _path(self.candidates, self.costs()), strict=True))
        return [path[fixed(sizes[self.dim])] for sizes in self.tasks.values()]

    def measure(self, wanted: Iterable[tuple[int, int]]) -> bool:
        """Measure candidates (the first numbers) at sizes (the second); False if none was."""
        new = [(c, n) for c, n in dict.fromkeys(wanted) if self._measured[c][n] is None]
        programs = [self._programs[number] for number in dict.fromkeys(c for c, _ in new)]
        self.timings.expect(self._general[0], programs)
        for number, n in new:
            [seconds] = self.timings.seconds(self._general[n], [self._programs[number]])
            self._measured[number][n] = seconds
        return any(self._measured[c][n] is not None for c, n in new)

    def logs(self, *, doubt: float = 0.0) -> list[list[float]]:
        """For each candidate, the logarithms of its seconds for the tasks; infinite if it fails.

        *doubt* is added to those that are not measured.
        """
        rows = zip(self._predicted, self._recorded, self._measured, strict=True)
        return [_logs(*row, doubt) for row in rows]

    @property
    def sizes(self) -> list[int]:
        """The sizes of the main dimension, in order."""
        return sorted({fixed(sizes[self.dim]) for sizes in self.tasks.values()})

    def costs(self, *, doubt: float = 0.0) -> list[list[float]]:
        """For each candidate, its logarithms of seconds at the sizes, by their shares of calls."""
        found = []
        for row in self.logs(doubt=doubt):
            by_size = dict.fromkeys(self.sizes, 0.0)
            for sizes, share, seconds in zip(self.tasks.values(), self._shares, row, strict=True):
                by_size[fixed(sizes[self.dim])] += share * seconds
            found.append([*by_size.values()])
        return found


def _state(candidate: _Candidate, sizes: Sizes) -> State | None:
    """The schedule at *sizes*; None if it does not apply there."""
    try:
        return candidate.state(sizes)
    except ScheduleError:
        return None


def _logs(
    predicted: Sequence[float],
    recorded: Sequence[float | None],
    measured: Sequence[float | None],
    doubt: float,
) -> list[float]:
    """The logarithms of a candidate's seconds: measured ones, or else expected ones."""
    known = [r if m is None else m for r, m in zip(recorded, measured, strict=True)]
    pairs = zip(predicted, known, strict=True)
    wrong = [log(k) - log(p) for p, k in pairs if k is not None and k < inf]
    mean = sum(wrong) / len(wrong) if wrong else 0.0
    return [
        (log(p) + mean if k is None else log(k)) + (doubt if m is None else 0.0)
        for p, k, m in zip(predicted, known, measured, strict=True)
    ]


_NEAR = log(1.03)
"""Schedules that take this much longer than the fastest one are worth replacing."""


def _packed_alike(times: _Times) -> Iterator[tuple[int, list[_Candidate]]]:
    """Schedules that read constants as those do that are chosen so far.

    They are looked for at the sizes (of these numbers) at which another packing is faster.
    """
    tuner, path = times.timings.tuner, times.chosen()
    logs = [list(column) for column in zip(*times.logs(), strict=True)]
    for n, (task, sizes) in enumerate(times.tasks.items()):
        number, seconds = path[n], logs[n]
        chosen = times.candidates[number]
        if not chosen.packing[0] or seconds[number] < min(seconds) + _NEAR:
            continue
        definition = dag_at(chosen.definition, sizes)
        states = packed_alike(tuner, task, definition, chosen.definition, chosen.history)
        candidates = (_Candidate(chosen.definition, state.history) for state in states)
        yield n, [candidate for candidate in candidates if candidate.applies]


def _candidates(tuner: Tuner, group: TaskGroup, found: Sequence[Chosen]) -> list[_Candidate]:
    """The schedules *found* that apply at all sizes, each also with loops over sizes inside.

    If none of them does, those predicted for the definition itself.

    A team divides a parallel nest into equal parts, but tiles beyond the axis are skipped: if the
    loops over sizes are the outer ones, the last part has less to do than the others.
    """
    general = _General(tuner, group.dag)
    candidates: list[_Candidate] = []
    for predicted in (False, True):
        for chosen, sizes in zip(found, group.tasks.values(), strict=True):
            one = tuner.predicted_directly(chosen.task) if predicted else chosen
            candidates += general.candidates(one.state, sizes)
        if candidates:
            break
    if not candidates:
        raise NoValidProgram(f"{found[0].task.name}: no schedule applies at all sizes")
    return candidates


class _General:
    """The definitions of a workload that compute it at all sizes."""

    def __init__(self, tuner: Tuner, dag: ComputeDAG) -> None:
        request = tuner.request
        preset = request.preset or preset_for(request.target)
        self._rest = definitions_for_all(dag, preset.algorithms, request.target, request.precision)
        self._known: list[ComputeDAG] = []

    def candidates(self, state: State, sizes: Sizes) -> Iterator[_Candidate]:
        """The schedule *state*, found at *sizes*, for all sizes; none if it does not apply."""
        definition = self._of(state.definition, sizes)
        if definition is None:
            return
        candidate = _Candidate(definition, state.history)
        if candidate.applies:
            yield candidate
            for inside in _sizes_inside(candidate.state({})):
                other = _Candidate(definition, inside.history)
                if other.applies:
                    yield other

    def _of(self, dag: ComputeDAG, sizes: Sizes) -> ComputeDAG | None:
        """The definition for all sizes that is *dag* at *sizes*; None if there is none."""
        wanted = structural_hash(dag)
        for definition in chain(self._known, self._others()):
            if structural_hash(dag_at(definition, sizes)) == wanted:
                return definition
        return None

    def _others(self) -> Iterator[ComputeDAG]:
        """Definitions that were not made yet, which takes a while."""
        for definition in self._rest:
            self._known.append(definition.dag)
            yield definition.dag


def _sizes_inside(state: State) -> Iterator[State]:
    for stage in state.stages:
        mark = stage.parallel
        if mark is None or stage.attach is not None:
            continue
        loops = [it for it in stage.iters if it.name in mark.iters]
        order = sorted(loops, key=lambda it: not isinstance(it.extent, int))
        if order != loops:
            yield state.reorder(stage, order)


_CHANGE = log(1.02) / (2 * MOST_SIZES)
"""What another schedule must gain on average: it is more code."""

_PACKING = log(1.05)
"""What schedules with packed constants of their own must gain on average: they are more memory."""

_SMALL_BYTES = 1 << 16
"""Packed constants of this size are too small to matter."""


def _path(candidates: Sequence[_Candidate], costs: Sequence[Sequence[float]]) -> list[int]:
    """Which candidate serves each size.

    All of them read the same packed constants, unless these are small and a second copy pays.
    """
    of_packing: dict[str, list[int]] = {}
    for number, candidate in enumerate(candidates):
        of_packing.setdefault(candidate.packing[0], []).append(number)
    alike = [_cheapest(costs, members) for members in of_packing.values()]
    total, path = min(alike)
    freely_s, freely = _cheapest(costs, range(len(candidates)))
    is_small = all(candidates[number].packing[1] <= _SMALL_BYTES for number in freely)
    return freely if total == inf or (is_small and total - freely_s > _PACKING) else path


def _cheapest(costs: Sequence[Sequence[float]], members: Sequence[int]) -> tuple[float, list[int]]:
    """The cheapest path over the sizes through the candidates *members*, and its cost."""
    best = [(costs[n][0], [n]) for n in members]
    for size in range(1, len(costs[0])):
        best = [
            min((total + costs[n][size] + (_CHANGE if path[-1] != n else 0.0), [*path, n])
                for total, path in best)
            for n in members
        ]  # fmt: skip
    return min(best)


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
