"""Tune a set of tasks: a scheduler assigns rounds to their searches until the budget is spent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, inf

import numpy as np

from ansorpy.cost.boosted import BoostedTrees
from ansorpy.cost.bound import roofline_seconds
from ansorpy.cost.protocol import CostModel, Remembering
from ansorpy.cost.saved import SavedModel
from ansorpy.deadline import until
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.journal import Journal
from ansorpy.measure.run.interfaces import Runner
from ansorpy.profiler import Activity, Profiler, profiled
from ansorpy.search.events import Listener, Phase, Progress, silent
from ansorpy.search.population import Pool, SketchSource
from ansorpy.search.task_search import SearchOptions, TaskSearch
from ansorpy.search.trials import MeasuredTrials, Trials
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.objective import (
    Objective,
    Totals,
    TunedNetwork,
    misses,
    totals,
    with_gradients,
)
from ansorpy.tasks.objectives.weighted_sum import WeightedSum
from ansorpy.tasks.outcome import Ending, TaskOutcome, Tuning
from ansorpy.tasks.overtime import revived
from ansorpy.tasks.pace import Pace, least_retime_s, retime_s
from ansorpy.tasks.pretrain import pretrain
from ansorpy.tasks.progress import TaskProgress
from ansorpy.tasks.recorded_request import preset_name, request_of
from ansorpy.tasks.scheduler import Round, TaskScheduler
from ansorpy.tasks.schedulers.gradient import Gradient
from ansorpy.tasks.task_trials import trials_of_tasks
from ansorpy.tasks.trial_plan import expected_shares

__all__ = ["PATIENCE", "TuneOptions", "WeightedTask", "tune_tasks", "tune_with_trials"]

PATIENCE = 4
"""Rounds without a correct program after which a task is dropped.

Differs: TVM drops a task after one round, but its rounds have 64 trials.
"""


@dataclass(frozen=True)
class WeightedTask:
    """A task, its number of occurrences, and the source of its placed sketches."""

    task: Task
    source: SketchSource
    weight: float = 1.0


@dataclass(frozen=True)
class TuneOptions:
    """The replaceable parts of a tuning run.

    ``scheduler`` makes the run's own scheduler, and ``model`` the cost model that all tasks share.
    ``networks`` are those that ``objective`` refers to; empty: one network with the tasks' weights.
    ``ahead``: whether to prepare for a task's next round while one is measured, where computing on
    this machine's cores does not disturb what is timed.
    """

    search: SearchOptions = SearchOptions()
    scheduler: Callable[[], TaskScheduler] = Gradient
    objective: Objective = WeightedSum()
    networks: tuple[TunedNetwork, ...] = ()
    model: Callable[[], CostModel] = BoostedTrees
    round_size: int | None = None
    retime: bool = True
    ahead: bool = False


def tune_tasks(
    tasks: Sequence[WeightedTask],
    budget: Budget,
    runner: Runner,
    database: Database,
    *,
    options: TuneOptions | None = None,
    listener: Listener = silent,
    journal: Journal | None = None,
) -> Tuning:
    """Measure programs of *tasks* until *budget* is spent; return the fastest of each.

    Every trial is committed to *database*.  Its earlier trials count as spent, and the model learns
    from them first.  Ctrl-C then ends the run with what was found so far.  Its events are recorded
    in *database* too, unless *journal* is given.

    Raises:
        NoValidProgram: No trial of a task gave a correct program, not even its default schedule;
            not raised if the budget was spent before the default schedule was tried.
    """
    trials = MeasuredTrials(runner, database, journal)
    return tune_with_trials(tasks, budget, trials, options=options, listener=listener)


def tune_with_trials(
    tasks: Sequence[WeightedTask],
    budget: Budget,
    trials: Trials,
    *,
    options: TuneOptions | None = None,
    listener: Listener = silent,
) -> Tuning:
    """Run :func:`tune_tasks` with *trials* that are measured, or replayed from a recorded run."""
    trials.note_ending("")
    interrupted, ended = False, Ending.INTERRUPTED
    with Profiler() as profiler:
        run = _Run(tasks, budget, trials, options or TuneOptions(), listener, profiler)
        run.resume()
        try:
            ended = run.spend()
            run.finish()
        except KeyboardInterrupt:
            interrupted = True
            trials.journal.note("stopped", {})
    trials.note_ending(ended.value)
    outcomes = run.outcomes()
    found = [_found(trials.database, outcome) for outcome in outcomes]
    trials.journal.note("found", {"best": found})
    for at, search in enumerate(run.searches) if not interrupted else ():
        # Until the default schedule is tried, nothing is known to be wrong with the task.
        if not search.default_pending and run.lacks(at):
            raise search.history.no_valid_program(search.task.name, ended.value)
    return Tuning(outcomes, interrupted, ended, profiler.seconds)


@dataclass
class _Run:
    """One tuning run: its searches and its remaining budget."""

    tasks: Sequence[WeightedTask]
    budget: Budget
    trials: Trials
    options: TuneOptions
    listener: Listener
    profiler: Profiler

    def __post_init__(self) -> None:
        given = self.options.model
        if isinstance(given, SavedModel):
            self.trials.keep_model(given.digest, given.text())
        self.model = given()
        self.scheduler = self.options.scheduler()
        self.journal = self.trials.journal
        self.pace = Pace(self.budget, len(self.tasks))
        self.networks = self.options.networks or (
            TunedNetwork(tuple(e.weight for e in self.tasks)),
        )
        self.least_s = [roofline_seconds(e.task, e.source.definitions) for e in self.tasks]
        self.shares = [0.0] * len(self.tasks)
        """Each task's planned fraction of the trials, known once earlier records are read."""
        self.is_overtime = False
        # Reports come after every trial, but few change a task's best time.
        self.totalled: list[float | None] = []
        self.totals = Totals(None, None, ())
        self.rng = np.random.default_rng(self.options.search.seed)
        self.searches = [
            TaskSearch(e.task, e.source, self.model, self.trials, self._options(n), self._report)
            for n, e in enumerate(self.tasks)
        ]

    def _options(self, number: int) -> SearchOptions:
        """Search options of a task, with its own seed."""
        seed = int(np.random.SeedSequence([self.options.search.seed, number]).generate_state(1)[0])
        return replace(self.options.search, seed=seed)

    def resume(self) -> None:
        """Record the request, and load earlier trials.

        Other processes may continue to write; the run never sees what they add.
        """
        with until(self._moment(0.0)), self.trials.computing(), profiled(Activity.RESUME):
            self.journal.note("request", self._request())
            for search in self.searches:
                search.resume()
            if self.options.search.transfer.others and isinstance(self.model, Remembering):
                pretrain(self.model, self.trials.known, [entry.task for entry in self.tasks])
            self.model.refit()

    def _request(self) -> dict[str, object]:
        """Everything the run depends on, except versions, results and the clock."""
        entries = [(e.task, preset_name(e.source), e.weight) for e in self.tasks]
        options = replace(self.options, networks=())
        networks, known = self.options.networks, self.trials.known
        request = request_of(entries, self.budget, options, networks, known)
        return request.model_dump(mode="json")

    def spend(self) -> Ending:
        """Give rounds to tasks until a limit is reached or no task is worth another round."""
        self.shares = expected_shares(
            [e.weight for e in self.tasks], self.least_s, [s.history.best_s for s in self.searches]
        )
        while True:
            reserved_s = self._reserved_s
            tasks, left_s = self._progress(), self._left_s(reserved_s)
            if self.budget.trials is not None and self._spent >= self.budget.trials:
                return Ending.TRIALS
            if left_s is not None and left_s <= 0:
                return Ending.TIME
            fitting = [
                task if self._fits(at, left_s) else replace(task, alive=False, resting=False)
                for at, task in enumerate(tasks)
            ]
            chosen = self.scheduler.next(fitting, self.rng)
            if chosen is None and left_s is not None and self._may_go_on():
                self.is_overtime = True
                continue
            if chosen is None:
                return self._ending(tasks, fitting)
            at = chosen.task
            size = self._size(chosen, tasks, left_s)
            ahead = self.options.ahead and self._expects_more(at, size, left_s)
            search = self.searches[at]
            before_s = search.measuring_s
            beside = partial(self._ask_ahead, at, size, fitting, left_s)
            with until(self._moment(reserved_s)):
                spent = search.step(size, ahead=ahead, beside=beside)
            self.trials.note_times(self.profiler.take_spans())
            after_s = self._left_s(reserved_s)
            if left_s is not None and after_s is not None:
                took_s, measuring_s = left_s - after_s, search.measuring_s - before_s
                self.pace.note(at, tasks[at].rounds == 0, spent, took_s, measuring_s)

    def _fits(self, at: int, left_s: float | None) -> bool:
        """Whether a round of task *at* is expected to end within *left_s*.

        One of a task without a program may take whatever is left.
        """
        history = self.searches[at].history
        if left_s is None or history.best is None:
            return True
        return self.pace.round_s(at, not history.rounds, 1) <= left_s

    def _size(self, chosen: Round, tasks: Sequence[TaskProgress], left_s: float | None) -> int:
        """Trials of the round *chosen*."""
        size = self.options.round_size or self.pace.size(chosen.task, tasks, left_s)
        return min(ceil(chosen.part * size), self._allowed(chosen.task))

    def _ask_ahead(
        self, at: int, size: int, tasks: Sequence[TaskProgress], left_s: float | None
    ) -> Future[Pool] | None:
        """Ask for the candidates of the round that may follow this one, of another task.

        This round of *size* trials of task *at* changes nothing about that but the model that all
        tasks share.  If another round is chosen, the candidates stay for a later one.
        """
        others = [*tasks]
        others[at] = replace(tasks[at], alive=False, resting=False)
        if not any(task.alive for task in others):
            return None
        found = deepcopy(self.scheduler).next(others, deepcopy(self.rng))
        if found is None or not self._expects_more(found.task, size, left_s):
            return None
        return self.searches[found.task].ask_ahead(self._size(found, others, left_s))

    def _expects_more(self, at: int, size: int, left_s: float | None) -> bool:
        """Whether the budget will allow a round of task *at* after one of *size* trials."""
        if left_s is not None and left_s < 2 * self.pace.round_s(at, False, size):
            return False
        return self._allowed(at) > size

    def _may_go_on(self) -> bool:
        """Whether resting tasks may use the remaining time.

        They may do so once, and only if every task that a network needs has a correct program.
        """
        missing = any(self.lacks(number) for number in range(len(self.tasks)))
        return not self.is_overtime and not missing

    def _ending(self, tasks: Sequence[TaskProgress], fitting: Sequence[TaskProgress]) -> Ending:
        """Why no task of those *fitting* into the time left is worth another round."""
        if [task.alive for task in tasks] != [task.alive for task in fitting]:
            return Ending.TIME
        if any(task.alive for task in tasks) and not any(task.gradient for task in tasks):
            return Ending.OBJECTIVE
        limit = self.budget.trials_per_task
        spent = [task.trials for task in tasks if task.gradient]
        reached = limit is not None and min(spent, default=0) >= limit
        return Ending.TRIALS if reached else Ending.NOTHING_LEFT

    def finish(self) -> None:
        """Re-time the finalists of each task, the costliest task first, while time is left."""
        tasks = with_gradients(self._live(), WeightedSum(), self.networks)
        order = np.argsort([task.objective_s for task in tasks])[::-1]
        for at in order if self.options.retime else ():
            left_s, search = self._left_s(0.0), self.searches[at]
            if tasks[at].gradient and (left_s is None or left_s > least_retime_s(search.history)):
                with profiled(Activity.RETIME), until(self._moment(0.0)):
                    search.retime()
        self.trials.note_times(self.profiler.take_spans())
        self._report(Progress(Phase.FINISHED))

    def lacks(self, at: int) -> bool:
        """Whether task *at* has no correct program and a network cannot run without it."""
        return self.searches[at].history.best is None and misses(self.networks, self._live(), at)

    def outcomes(self) -> tuple[TaskOutcome, ...]:
        ended = [self._why_ended(search) for search in self.searches]
        found = trials_of_tasks(self._live(), ended)
        return tuple(
            TaskOutcome(search.task, search.history.best, search.history, trials)
            for search, trials in zip(self.searches, found, strict=True)
        )

    def _progress(self) -> list[TaskProgress]:
        tasks = [self._progress_of(number) for number in range(len(self.tasks))]
        tasks = with_gradients(tasks, self.options.objective, self.networks)
        return revived(tasks) if self.is_overtime else tasks

    def _live(self) -> list[TaskProgress]:
        """The current progress of the tasks, even in the middle of a round."""
        best = [search.history.best_s or inf for search in self.searches]
        trials = [search.history.trials for search in self.searches]
        return [
            replace(self._progress_of(n), best_after=(best[n],), trials_after=(trials[n],))
            for n in range(len(self.tasks))
        ]

    def _progress_of(self, at: int) -> TaskProgress:
        search, task = self.searches[at], self.tasks[at].task
        timed = self.budget.time_limit_s is not None
        return TaskProgress(
            best_after=tuple(search.history.best_after),
            trials_after=tuple(search.history.trials_after),
            earlier=search.history.earlier,
            flops=task.flops,
            alive=not self._why_ended(search),
            resting=self._is_flat(search) and not self._why_over(search),
            since_gain=search.history.since_gain,
            class_key=task.class_key,
            least_s=self.least_s[at],
            share=self.shares[at],
            cost=self.pace.round_s(at, False, self.pace.usual) if timed else 1.0,
        )

    def _why_ended(self, search: TaskSearch) -> str:
        """Why a task gets no more trials unless it is revived; empty if it may get more."""
        return self._why_over(search) or ("stopped improving" if self._is_flat(search) else "")

    def _why_over(self, search: TaskSearch) -> str:
        """The reason why more trials of a task are impossible or useless; empty if they are not."""
        spent, limit = search.history, self.budget.trials_per_task
        if search.exhausted:
            return "no new candidate was found"
        if spent.best is None and spent.rounds >= PATIENCE:
            return "no program was correct"
        return "at the limit of trials per task" if limit and spent.trials >= limit else ""

    def _is_flat(self, search: TaskSearch) -> bool:
        plateau = self.budget.plateau
        return plateau is not None and search.history.has_plateau(plateau)

    def _allowed(self, at: int) -> int:
        """Trials task *at* may still spend."""
        total, each = self.budget.trials, self.budget.trials_per_task
        left = [] if total is None else [total - self._spent]
        left += [] if each is None else [each - self.searches[at].history.trials]
        return min(left, default=1 << 30)

    @property
    def _spent(self) -> int:
        return sum(search.history.trials for search in self.searches)

    def _left_s(self, reserved_s: float) -> float | None:
        """Seconds left of the time limit, less *reserved_s*.

        Every decision reads the clock here, so that a replay sees the same times.
        """
        limit = self.budget.time_limit_s
        return None if limit is None else limit - reserved_s - self.journal.seconds()

    def _moment(self, reserved_s: float) -> float:
        """The time at which measuring is cut off: *reserved_s* before the time limit."""
        limit = self.budget.time_limit_s
        return inf if limit is None else self.journal.moment(limit - reserved_s)

    @property
    def _reserved_s(self) -> float:
        """Seconds of the time limit reserved for :meth:`finish`, at most a tenth."""
        limit = self.budget.time_limit_s if self.options.retime else None
        if limit is None:
            return 0.0
        return min(limit / 10, sum(retime_s(search.history) for search in self.searches))

    def _report(self, progress: Progress) -> None:
        """Pass on a report, with the totals of the whole run added."""
        best = [search.history.best_s for search in self.searches]
        if best != self.totalled:
            self.totalled = best
            firsts = [search.history.first_s for search in self.searches]
            self.totals = totals(self.networks, self._live(), firsts)
        limit = self.budget.trials
        if limit is None and self.budget.trials_per_task is not None:
            limit = self.budget.trials_per_task * len(self.searches)
        time_s = self.budget.time_limit_s
        self.listener(
            replace(
                progress,
                total_trials=self._spent,
                trial_limit=limit,
                total_s=self.totals.best_s,
                untuned_s=self.totals.untuned_s,
                calls={e.task.key: n for e, n in zip(self.tasks, self.totals.calls, strict=True)},
                left_s=None if time_s is None else time_s - self.journal.shown_s(),
                seconds=self.profiler.seconds,
            )
        )


def _found(database: Database, outcome: TaskOutcome) -> dict[str, object]:
    best, task = outcome.best, outcome.task.key
    if best is None:
        return {"task": task, "program": None}
    return {"task": task, "program": database.program(best.state), "seconds": best.seconds}
