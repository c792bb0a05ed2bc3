"""Record programs of many tasks, as data for cost models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.boosted import BoostedTrees
from ansorpy.cost.programs import Programs
from ansorpy.cost.protocol import CostModel
from ansorpy.errors import AnsorpyError
from ansorpy.ir.task import Task
from ansorpy.measure.program_dataset import MeasuredSketch, MeasuredTask
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.run.interfaces import Expecting, Runner
from ansorpy.measure.run.timing import TimingPolicy
from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from ansorpy.schedule.space import Table
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_to_json
from ansorpy.search.population import Candidate, by_sketch, different, score_all
from ansorpy.search.selector import Selector
from ansorpy.search.selectors.epsilon_greedy import EpsilonGreedy
from ansorpy.search.strategies.evolution import Evolution
from ansorpy.search.strategy import Context, Strategy

__all__ = ["QUICK", "RecordOptions", "Recorder", "Skipped"]

QUICK = TimingPolicy(warm_s=0.001, total_s=0.006, min_samples=1, slow_factor=10.0)
"""Building a program takes a few hundredths of a second, so timing it should not take longer."""


@dataclass(frozen=True)
class RecordOptions:
    """How many programs of each task are recorded, and which.

    Args:
        programs: Programs of each task.
        drawn: The share of them that the rules draw; a search finds the others, once a model has
            learned from these, so that there are more fast ones than by chance.
        sketches: Placed sketches that the drawn programs are from.
        longest_s: Tasks are left out if each drawn program is predicted to take longer: most of the
            time would go to their slowest programs.
    """

    programs: int = 64
    drawn: float = 0.5
    sketches: int = 8
    longest_s: float = 0.005
    seed: int = 0
    strategy: Callable[[], Strategy] = lambda: Evolution(population=512, generations=2)
    selector: Selector = EpsilonGreedy()
    model: Callable[[], CostModel] = BoostedTrees


_T = TypeVar("_T")
_Found: TypeAlias = tuple[Candidate, MeasureResult]


@dataclass(frozen=True)
class Skipped:
    """A task of which nothing was recorded, and why."""

    task: Task
    source: str
    reason: str


@dataclass
class _Begun:
    """A task whose first programs are drawn, and those measured so far."""

    source: str
    task: Task
    context: Context
    drawn: list[Candidate]
    found: list[_Found] = field(default_factory=list)


class Recorder:
    """Measures programs of tasks with *runner*.

    One task's search runs while the next one's first programs are built in the background.

    Paper: One-Shot Tuner (CC 2022), whose samples are from a search guided by a model, so that fast
    code, which is rare, is not missing.  Differs: half of the programs are drawn by the rules, and
    the model is that of one task, trained once.
    """

    def __init__(self, runner: Runner, options: RecordOptions | None = None) -> None:
        self.runner = runner
        self.options = options or RecordOptions()

    def record(self, tasks: Iterable[tuple[str, Task]]) -> Iterator[MeasuredTask | Skipped]:
        """Yield the measured programs of each of *tasks*, which come with their sources' names.

        A task that breaks the search is skipped, and the recording goes on.
        """
        skipped: list[Skipped] = []
        begins = self._begins(tasks, skipped)
        current, following = next(begins, None), next(begins, None)
        while current is not None:
            source, task = current.source, current.task
            picked = _or_skipped(source, task, partial(self._first_half, current, following))
            after = next(begins, None)  # while the first programs of *following* are built
            yield from skipped
            skipped.clear()
            if isinstance(picked, Skipped):
                yield picked
            else:
                yield _or_skipped(source, task, partial(self._second_half, current, picked))
            current, following = following, after
        yield from skipped

    def _begins(
        self, tasks: Iterable[tuple[str, Task]], skipped: list[Skipped]
    ) -> Iterator[_Begun]:
        """The tasks that can be recorded; the others are added to *skipped*."""
        for source, task in tasks:
            begun = _or_skipped(source, task, partial(self._begin, source, task))
            if isinstance(begun, Skipped):
                skipped.append(begun)
            else:
                yield begun

    def _begin(self, source: str, task: Task) -> _Begun | Skipped:
        """Draw the first programs of *task*, some of each of a few placed sketches."""
        options = self.options
        rng = np.random.default_rng(options.seed)
        context = Context(task, SketchSampler(task), options.model(), rng)
        count = max(2, round(options.drawn * options.programs))
        tables = context.samples(min(options.sketches, count), count)
        scored = score_all(task, AnalyticModel(), tables)
        fastest = max((group.scores.max() for group in scored if len(group)), default=0.0)
        if fastest * options.longest_s < 1:
            return Skipped(task, source, "its programs would take too long")
        drawn = different(candidate for group in scored for candidate in group.candidates())
        if len(drawn) < 2:
            return Skipped(task, source, "it has one program only")
        return _Begun(source, task, context, drawn)

    def _first_half(self, begun: _Begun, following: _Begun | None) -> list[Candidate]:
        """Measure what was drawn; returns what a search proposes next.

        The build of *following*'s first programs starts meanwhile.
        """
        self._measure(begun, begun.drawn)
        if following is not None and isinstance(self.runner, Expecting):
            self.runner.expect(following.task, _states(following.drawn))
        return self._searched(begun)

    def _second_half(self, begun: _Begun, picked: Sequence[Candidate]) -> MeasuredTask:
        self._measure(begun, picked)
        return _measured(begun)

    def _searched(self, begun: _Begun) -> list[Candidate]:
        """The programs that a search proposes after the drawn ones."""
        options, context = self.options, begun.context
        count = options.programs - len(begun.found)
        if count <= 0:
            return []
        for sketch, table, seconds in _by_sketch(begun.found):
            context.model.learn(begun.task, Programs(sketch.space, table), seconds)
        context.model.refit()
        strategy = options.strategy()
        strategy.tell(begun.found)
        pool = strategy.ask(context, count)
        return context.new(options.selector.pick(pool, count, context.rng))

    def _measure(self, begun: _Begun, candidates: Sequence[Candidate]) -> None:
        begun.context.note(candidates)
        made = {state: c for c in candidates if (state := _state(c)) is not None}
        results = self.runner.measure(begun.task, list(made), incumbent_s=_best_s(begun.found))
        known = {made[s].key: result for s, result in zip(made, results, strict=True)}
        failed = MeasureResult(TrialKind.LOWER_ERROR, reason="no program exists for this row")
        begun.found += [(c, known.get(c.key, failed)) for c in candidates]


def _or_skipped(source: str, task: Task, work: Callable[[], _T]) -> _T | Skipped:
    """The result of *work*; if it fails, the reason."""
    try:
        return work()
    except AnsorpyError as error:
        return Skipped(task, source, str(error))
    except Exception as error:
        return Skipped(task, source, f"internal error: {type(error).__name__}: {error}")


def _state(candidate: Candidate) -> State | None:
    try:
        return candidate.state()
    except AnsorpyError:
        return None


def _states(candidates: Sequence[Candidate]) -> list[State]:
    return [state for c in candidates if (state := _state(c)) is not None]


def _best_s(found: Sequence[_Found]) -> float | None:
    return min((result.median_s for _, result in found if result.ok), default=None)


def _by_sketch(found: Sequence[_Found]) -> Iterator[tuple[PlacedSketch, Table, Floats]]:
    """The rows of each sketch, with their seconds: infinite for those that failed."""
    seconds = np.array([result.known_s for _, result in found])
    for sketch, table, at in by_sketch([candidate for candidate, _ in found]):
        yield sketch, table, seconds[at]


def _measured(begun: _Begun) -> MeasuredTask:
    sketches = tuple(
        MeasuredSketch(
            sketch.state.definition, sketch.definition, steps_to_json(sketch.state.history), table,
            seconds,
        )
        for sketch, table, seconds in _by_sketch(begun.found)
    )  # fmt: skip
    return MeasuredTask(begun.task, begun.source, sketches)
