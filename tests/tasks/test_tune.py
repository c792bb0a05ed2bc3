"""Tuning several tasks on a simulated machine."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ansorpy.api.stoppable_runner import StoppableRunner
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.bound import least_seconds
from ansorpy.cost.programs import Programs
from ansorpy.deadline import left_s
from ansorpy.errors import NoValidProgram
from ansorpy.graph.alternatives import Alternative, Alternatives
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.journal import RecordingJournal
from ansorpy.measure.records.rows import trial_digest
from ansorpy.measure.result import MeasureResult, TrialKind, out_of_time
from ansorpy.measure.run.interfaces import Observer
from ansorpy.measure.trial_end import TrialEnd
from ansorpy.profiler import Activity, Profiler
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.state import State
from ansorpy.search.events import Phase, Progress
from ansorpy.search.history import TaskHistory
from ansorpy.search.population import Pool, sample_valid, score
from ansorpy.search.strategies.evolution import PredictOptions
from ansorpy.search.strategies.random import RandomSearch
from ansorpy.search.strategy import Context, Strategy
from ansorpy.search.task_search import SearchOptions
from ansorpy.target import Target
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.objective import TunedNetwork
from ansorpy.tasks.outcome import Ending, Tuning
from ansorpy.tasks.predict import predicted_best
from ansorpy.tasks.progress import TaskProgress
from ansorpy.tasks.replay import rerun
from ansorpy.tasks.scheduler import Round, TaskScheduler
from ansorpy.tasks.schedulers import SCHEDULERS
from ansorpy.tasks.schedulers.round_robin import RoundRobin
from ansorpy.tasks.tune import PATIENCE, TuneOptions, WeightedTask, tune_tasks
from tests.rules.algorithms.convolutions import convolution
from tests.search.runners import FormulaRunner, true_seconds
from tests.search.small import SAMPLING
from tests.search.tasks import dense_relu, matmul, sampler, scale
from tests.tasks.anew import tune_anew
from tests.tasks.test_replay import NoBuilds
from tests.waiting import Clock


def weighted(task: Task, weight: float = 1.0) -> WeightedTask:
    return WeightedTask(task, sampler(task), weight)


QUICK = TuneOptions(SearchOptions(SAMPLING), model=AnalyticModel)
TASKS = [weighted(matmul(48, 48, 48), 3.0), weighted(dense_relu(16, 32, 64)), weighted(scale(64))]


def test_spends_the_budget_and_finds_a_program_for_every_task() -> None:
    runner = FormulaRunner()
    tuned = tune_anew(TASKS, Budget(trials=30), runner, options=replace(QUICK, retime=False))
    assert len(runner.seen) == 30
    assert sum(o.history.trials for o in tuned.outcomes) == 30
    for entry, outcome in zip(TASKS, tuned.outcomes, strict=True):
        assert outcome.task is entry.task and not tuned.interrupted
        default = true_seconds(entry.task, State.initial(entry.task.dag))
        assert outcome.best and outcome.best.seconds <= default


@dataclass
class Starts(FormulaRunner):
    """Notes when it is told to start its workers, and when it measures."""

    told: list[tuple[str, int]] = field(default_factory=list)

    def start(self, threads: int) -> None:
        self.told.append(("start", threads))

    def computing(self) -> AbstractContextManager[None]:
        self.told.append(("search", 0))
        return nullcontext()

    def time_after(self, work: Future[Any]) -> None:
        self.told.append(("beside", 0))

    def measure(
        self,
        task: Task,
        candidates: Sequence[State],
        *,
        incumbent_s: float | None,
        observer: Observer | None = None,
    ) -> list[MeasureResult]:
        self.told.append(("measure", task.threads))
        return super().measure(task, candidates, incumbent_s=incumbent_s, observer=observer)


def test_workers_start_before_the_first_candidates_are_sought() -> None:
    runner = Starts()
    stoppable = StoppableRunner(runner, lambda: None)  # type: ignore[arg-type]
    tune_anew(TASKS[:1], Budget(trials=16), stoppable, options=replace(QUICK, round_size=8))
    threads = TASKS[0].task.threads
    started = runner.told.index(("start", threads))
    assert runner.told[started + 1 :][0] == ("search", 0)
    assert ("measure", threads) not in runner.told[:started]
    assert runner.told.count(("start", threads)) == 1


def test_trials_per_task_hold_for_each() -> None:
    tuned = tune_anew(TASKS[:2], Budget(trials_per_task=10), FormulaRunner(), options=QUICK)
    assert [o.history.trials for o in tuned.outcomes] == [10, 10]


def test_round_robin_and_gradient_divide_differently() -> None:
    def trials(scheduler: Callable[[], TaskScheduler]) -> list[int]:
        options = replace(QUICK, scheduler=scheduler, round_size=8)
        heavy = [weighted(matmul(64, 64, 64), 100.0), weighted(matmul(8, 8, 8))]
        tuned = tune_anew(heavy, Budget(trials=48), FormulaRunner(), options=options)
        return [o.history.trials for o in tuned.outcomes]

    assert trials(RoundRobin) == [24, 24]
    first, second = trials(TuneOptions().scheduler)
    assert first > 2 * second


def test_a_plateau_ends_a_task() -> None:
    tuned = tune_anew([TASKS[0]], Budget(trials=400, plateau=12), FormulaRunner(), options=QUICK)
    [outcome] = tuned.outcomes
    assert outcome.history.trials < 400 and outcome.history.since_gain >= 12
    assert tuned.ended is Ending.NOTHING_LEFT


def test_a_run_resumes_past_schedules_it_cannot_read(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    with Database(path) as database:
        tune_tasks([TASKS[0]], Budget(trials=16), FormulaRunner(), database=database, options=QUICK)
        ranked = [r for r in database.fastest(TASKS[0].task.key, -1) if r.median_s is not None]
    with sqlite3.connect(path) as connection:
        steps = '[{"kind": "fold", "stage": "C"}]'
        marks = [(steps, record.id) for record in ranked[:3]]
        connection.executemany("UPDATE trials SET steps = ? WHERE id = ?", marks)
    connection.close()
    with Database(path) as database:
        tuned = tune_tasks(
            [TASKS[0]], Budget(trials=17), FormulaRunner(), database=database, options=QUICK
        )
    [outcome] = tuned.outcomes
    assert outcome.history.trials == 17 and outcome.history.earlier == 16
    best_s, next_s = outcome.history.best_s, ranked[3].median_s
    assert best_s is not None and next_s is not None and best_s <= next_s


@dataclass
class TrialClock(RecordingJournal):
    """One second per trial."""

    database: Database = field(default_factory=Database)
    runner: FormulaRunner = field(default_factory=FormulaRunner)

    def shown_s(self) -> float:
        return float(len(self.runner.seen))

    def moment(self, seconds: float) -> float:
        return inf


def tune_timed(
    tasks: Sequence[WeightedTask], budget: Budget, runner: FormulaRunner, options: TuneOptions
) -> Tuning:
    """Tune from no records, with a :class:`TrialClock`."""
    clock = TrialClock(runner=runner)
    return tune_tasks(tasks, budget, runner, clock.database, options=options, journal=clock)


def test_time_left_goes_to_tasks_that_rest_far_from_their_roofline() -> None:
    runner = FormulaRunner()
    tasks = [TASKS[0], weighted(matmul(24, 24, 24))]
    budget = Budget(time_limit_s=60, plateau=12)
    options = replace(QUICK, retime=False)
    tuned = tune_timed(tasks, budget, runner, options)
    # A round is planned to take a moment besides its trials, so the last second may be left.
    assert tuned.ended is Ending.TIME and len(runner.seen) >= 59


@dataclass
class Slow(FormulaRunner):
    """A trial takes a second, of one task eight."""

    slow: str = ""
    spent_s: float = 0.0

    def answer(self, task: Task, state: State) -> MeasureResult:
        self.spent_s += 8.0 if task.key == self.slow else 1.0
        return super().answer(task, state)


@dataclass
class SlowClock(TrialClock):
    """The seconds of :class:`Slow`."""

    runner: Slow = field(default_factory=Slow)

    def shown_s(self) -> float:
        return self.runner.spent_s


def test_time_too_short_for_one_task_is_left_to_another() -> None:
    tasks = [weighted(matmul(48, 48, 48)), weighted(matmul(24, 24, 24))]
    clock = SlowClock(runner=Slow(slow=tasks[0].task.key))
    options = replace(QUICK, scheduler=RoundRobin, round_size=1, retime=False)
    tuned = tune_tasks(
        tasks, Budget(time_limit_s=150), clock.runner, clock.database, options=options,
        journal=clock,
    )  # fmt: skip
    slow, quick = (outcome.history.trials for outcome in tuned.outcomes)
    assert tuned.ended is Ending.TIME and quick > slow + 2
    assert 148 <= clock.shown_s() <= 151


@dataclass
class Steady(Slow):
    """One task improves with every trial, others never."""

    better: str = ""

    def answer(self, task: Task, state: State) -> MeasureResult:
        super().answer(task, state)
        seconds = 1 / len(self.seen) if task.key == self.better else 1.0
        return MeasureResult(TrialKind.OK, (seconds,))


def test_a_resting_task_that_takes_too_long_is_not_offered() -> None:
    slow, quick = (weighted(matmul(n, n, n)) for n in (48, 24))
    clock = SlowClock(runner=Steady(slow=slow.task.key, better=quick.task.key))
    offered: list[tuple[float, bool]] = []

    class Watching(RoundRobin):
        def next(self, tasks: Sequence[TaskProgress], rng: np.random.Generator) -> Round | None:
            offered.append((clock.shown_s(), tasks[0].resting))
            return super().next(tasks, rng)

    options = replace(QUICK, scheduler=Watching, round_size=1, retime=False)
    tune_tasks(
        [slow, quick], Budget(time_limit_s=60, plateau=4), clock.runner, clock.database,
        options=options, journal=clock,
    )  # fmt: skip
    assert any(resting for seconds, resting in offered if seconds < 55)
    late = [resting for seconds, resting in offered if seconds >= 58]
    assert late and not any(late)


def test_time_too_short_for_a_task_is_left_to_one_that_rests() -> None:
    slow, quick = (weighted(matmul(n, n, n)) for n in (48, 24))
    clock = SlowClock(runner=Steady(slow=slow.task.key, better=slow.task.key))
    options = replace(QUICK, scheduler=RoundRobin, round_size=1, retime=False)
    tuned = tune_tasks(
        [slow, quick], Budget(time_limit_s=5 + 12 * 8 + 5, plateau=4), clock.runner,
        clock.database, options=options, journal=clock,
    )  # fmt: skip
    long, resting = (outcome.history.trials for outcome in tuned.outcomes)
    assert tuned.ended is Ending.TIME and long == 12 and resting > 5


@dataclass
class AtRoofline(FormulaRunner):
    """All programs take the roofline time of the fastest definition, or a little more."""

    over: float = 1.05

    def answer(self, task: Task, state: State) -> MeasureResult:
        self.seen.append(str(state.history))
        least = min(least_seconds(task, d.dag) for d in sampler(task).definitions)
        return MeasureResult(TrialKind.OK, (self.over * least,))


def test_tasks_near_their_roofline_leave_the_time() -> None:
    def spent(over: float) -> tuple[Ending, int]:
        runner = AtRoofline(over=over)
        budget = Budget(time_limit_s=120, plateau=12)
        options = replace(QUICK, retime=False)
        tuned = tune_timed([TASKS[0]], budget, runner, options)
        return tuned.ended, len(runner.seen)

    ending, trials = spent(1.05)
    assert ending is Ending.NOTHING_LEFT and 12 <= trials < 100
    ending, trials = spent(1.5)
    assert ending is Ending.TIME and trials >= 118  # another round would have been too long


def test_rooflines_are_of_the_fastest_definition() -> None:
    """Winograd has fewer products than the direct definition, so the remaining time is for it."""
    dag = ComputeDAG.of(convolution((14, 14), (3, 3), 64, 64, pad=1))
    task = Task(dag, Target.parse("x86-64-v4"), 1)
    seen: list[TaskProgress] = []

    @dataclass(frozen=True)
    class Watching:
        def next(self, tasks: Sequence[TaskProgress], rng: np.random.Generator) -> Round:
            seen.extend(tasks)
            return Round(0)

    options = replace(QUICK, retime=False, scheduler=Watching)
    tune_anew([weighted(task)], Budget(trials=2), FormulaRunner(), options=options)
    assert 0 < seen[0].least_s < 0.6 * least_seconds(task, task.dag)


def test_the_database_keeps_why_a_run_ended(tmp_path: Path) -> None:
    with Database(tmp_path / "tune.db") as database:
        tune_tasks([TASKS[0]], Budget(trials=4), FormulaRunner(), database=database, options=QUICK)
        assert database.sessions.all()[0].reason == Ending.TRIALS.value
    with Database(tmp_path / "tune.db") as database:
        tasks, budget = [weighted(scale(5))], Budget(trials=500)
        tune_tasks(tasks, budget, FormulaRunner(), database=database, options=QUICK)
    with Database(tmp_path / "tune.db") as database:
        assert database.sessions.all()[1].reason == Ending.NOTHING_LEFT.value


def raising(error: BaseException) -> FormulaRunner:
    """A runner that raises *error* at its second trial."""

    def fails(state: State, number: int) -> MeasureResult | None:
        if number == 2:
            raise error
        return None

    return FormulaRunner(fails=fails)


def test_what_is_raised_after_a_search_does_not_hide_why_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    with pytest.raises(ZeroDivisionError), Database(path) as database:
        tune_tasks([TASKS[0]], Budget(trials=8), FormulaRunner(), database=database, options=QUICK)
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), Database(path) as database:
        runner = raising(KeyboardInterrupt())
        tune_tasks([TASKS[0]], Budget(trials=16), runner, database=database, options=QUICK)
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), Database(path) as database:
        tune_tasks([TASKS[0]], Budget(trials=16), FormulaRunner(), database=database, options=QUICK)
        runner = raising(ZeroDivisionError())
        tune_tasks([TASKS[0]], Budget(trials=24), runner, database=database, options=QUICK)
    with Database(path) as database:
        reasons = [run.reason for run in database.sessions.all()]
    assert reasons == [Ending.TRIALS.value, Ending.INTERRUPTED.value, "ZeroDivisionError"]


def test_a_resumed_run_sees_a_plateau_in_its_own_trials(tmp_path: Path) -> None:
    with Database(tmp_path / "tune.db") as database:
        runner = FormulaRunner()
        tune_tasks([TASKS[0]], Budget(trials=48), runner, database=database, options=QUICK)
        budget = Budget(trials=400, plateau=12)
        tuned = tune_tasks([TASKS[0]], budget, runner, database=database, options=QUICK)
    [outcome] = tuned.outcomes
    new = outcome.history.trials - 48
    assert tuned.ended is Ending.NOTHING_LEFT and outcome.history.earlier == 48
    assert 12 <= outcome.history.since_gain <= new < 100


def test_exhausted_tasks_end_the_run_early() -> None:
    tuned = tune_anew([weighted(scale(5))], Budget(trials=10_000), FormulaRunner(), options=QUICK)
    assert 0 < tuned.outcomes[0].history.trials < 100


def test_a_time_limit_that_has_passed_measures_nothing() -> None:
    runner = FormulaRunner()
    tuned = tune_anew(TASKS, Budget(time_limit_s=1e-9), runner)
    assert runner.seen == [] and all(o.best is None for o in tuned.outcomes)


def test_a_task_without_a_correct_program_is_an_error_with_counts() -> None:
    runner = FormulaRunner(fails=lambda s, n: MeasureResult(TrialKind.CRASH, reason="signal 11"))
    with pytest.raises(NoValidProgram, match="8 crash(.|\n)*signal 11"):
        tune_anew([TASKS[0]], Budget(trials=8), runner, options=QUICK)


def test_a_single_failure_says_nothing_of_the_task() -> None:
    runner = FormulaRunner(fails=lambda s, n: MeasureResult(TrialKind.CRASH, reason="signal 11"))
    [outcome] = tune_anew([TASKS[0]], Budget(trials=1), runner, options=QUICK).outcomes
    assert outcome.best is None and outcome.history.failures == {TrialKind.CRASH: 1}


def test_rounds_of_one_trial_come_to_the_default_schedule() -> None:
    def crashes(state: State, number: int) -> MeasureResult | None:
        return MeasureResult(TrialKind.CRASH, reason="signal 11") if state.history else None

    options = replace(QUICK, round_size=1)
    runner = FormulaRunner(fails=crashes)
    [outcome] = tune_anew([TASKS[0]], Budget(trials=3), runner, options=options).outcomes
    assert outcome.best is not None and not outcome.best.state.history
    assert outcome.history.trials == 3 and outcome.history.failures == {TrialKind.CRASH: 2}


class Barren(Strategy):
    """Has nothing to offer."""

    def ask(self, context: Context, n: int) -> Pool:
        return Pool(())


def test_a_round_of_one_trial_is_the_default_schedule_where_nothing_else_is_left() -> None:
    options = replace(QUICK, search=SearchOptions(Barren), round_size=1)
    [outcome] = tune_anew([TASKS[0]], Budget(trials=3), FormulaRunner(), options=options).outcomes
    assert outcome.best is not None and not outcome.best.state.history


@pytest.mark.parametrize("scheduler", SCHEDULERS.names)
def test_a_task_that_never_works_is_given_up_and_ends_the_run(scheduler: str) -> None:
    works, fails = (weighted(matmul(n, n, n)) for n in (16, 24))

    def crashes(state: State, number: int) -> MeasureResult | None:
        own = state.definition.outputs[0].shape == (24, 24)
        return MeasureResult(TrialKind.CRASH, reason="signal 11") if own else None

    runner = FormulaRunner(fails=crashes)
    options = replace(QUICK, scheduler=SCHEDULERS.factory(scheduler), round_size=6)
    budget = Budget(time_limit_s=1000, plateau=12)
    with pytest.raises(NoValidProgram) as error:
        tune_anew([works, fails], budget, runner, options=options)
    assert f"none of {6 * PATIENCE} trials" in str(error.value)
    assert f"ended: {Ending.NOTHING_LEFT.value}" in str(error.value)
    assert "never gave a correct program" in str(error.value)


def test_ctrl_c_returns_what_was_found() -> None:
    def stop(state: State, number: int) -> MeasureResult | None:
        if number == 20:
            raise KeyboardInterrupt
        return None

    tuned = tune_anew([TASKS[0]], Budget(trials=64), FormulaRunner(fails=stop), options=QUICK)
    assert tuned.interrupted
    assert tuned.outcomes[0].best is not None
    assert tuned.outcomes[0].history.trials == 19


RANDOM = TuneOptions(SearchOptions(RandomSearch), model=AnalyticModel)


@dataclass
class TimedRunner(FormulaRunner):
    """Trials after the first *spared* hang; records the seconds left for each trial."""

    spared: int = 0
    given_s: list[float] = field(default_factory=list)

    def answer(self, task: Task, state: State) -> MeasureResult:
        self.given_s.append(left_s())
        if len(self.given_s) <= self.spared:
            return super().answer(task, state)
        time.sleep(max(left_s(), 0.0))
        return out_of_time()

    def retime(self, task: Task, candidates: Sequence[State]) -> list[MeasureResult]:
        self.given_s.append(left_s())
        return [out_of_time() for _ in candidates]


def test_what_is_measured_must_end_with_the_time_limit(tmp_path: Path, clock: Clock) -> None:
    runner = TimedRunner(spared=9)
    with Database(tmp_path / "tune.db") as database:
        tuned = tune_tasks(
            [TASKS[0]], Budget(time_limit_s=2.0), runner, database=database, options=RANDOM,
            journal=RecordingJournal(database, clock.now),
        )  # fmt: skip
        [outcome] = tuned.outcomes
        assert tuned.ended is Ending.TIME and len(runner.given_s) > 10
        assert outcome.history.trials == database.trials(outcome.task.key) == 9
        assert outcome.best is not None and not outcome.history.failures
        *searching, finishing = runner.given_s
        assert max(searching) == pytest.approx(1.8)
        assert finishing == pytest.approx(0.2, abs=0.02)
        best_s = outcome.best.seconds
        resumed = tune_tasks(
            [TASKS[0]], Budget(trials=20), FormulaRunner(), database=database, options=RANDOM
        )
        assert resumed.outcomes[0].history.trials == 20
        assert resumed.outcomes[0].best and resumed.outcomes[0].best.seconds <= best_s
        again = list(rerun(database, 1, NoBuilds(), options=RANDOM))
    assert [(a.divergence, a.trials) for a in again] == [("", 9), ("", 11)]


def test_trials_without_a_limit_have_all_the_time() -> None:
    runner = TimedRunner(spared=8)
    tune_anew([TASKS[0]], Budget(trials=8), runner)
    assert set(runner.given_s) == {inf}


def test_no_time_for_the_default_schedule_is_no_error(clock: Clock) -> None:
    crash = MeasureResult(TrialKind.CRASH, reason="signal 11")
    runner = TimedRunner(fails=lambda state, number: crash, spared=1)
    journal = RecordingJournal(Database(), clock.now)
    tuned = tune_tasks(
        [TASKS[0]], Budget(time_limit_s=2.0), runner, journal.database, options=RANDOM,
        journal=journal,
    )  # fmt: skip
    [outcome] = tuned.outcomes
    assert outcome.best is None and outcome.history.trials == 1


def test_a_second_run_counts_the_first_ones_trials(tmp_path: Path) -> None:
    runner = FormulaRunner()
    path = tmp_path / "tune.db"
    with Database(path) as database:
        tune_tasks(TASKS[:2], Budget(trials=24), runner, database=database, options=QUICK)
    spent = len(set(runner.seen))
    reports: list[Progress] = []
    with Database(path) as database:
        tuned = tune_tasks(
            TASKS[:2],
            Budget(trials=40),
            runner,
            database=database,
            options=QUICK,
            listener=reports.append,
        )
        best = [database.best(o.task.key) for o in tuned.outcomes]
    assert spent == 24 and len(set(runner.seen)) == 40
    assert [r.phase for r in reports[:2]] == [Phase.RESUMED, Phase.RESUMED]
    assert reports[-1].phase is Phase.FINISHED and reports[-1].total_trials == 40
    found = [o.best for o in tuned.outcomes]
    assert [b and b.median_s for b in best] == [f and f.seconds for f in found]


def test_the_first_round_of_a_resumed_task_is_its_first(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    class Watching(RoundRobin):
        def next(self, tasks: Sequence[TaskProgress], rng: np.random.Generator) -> Round | None:
            seen.append((tasks[0].rounds, tasks[0].trials))
            return super().next(tasks, rng)

    options = replace(QUICK, scheduler=Watching, round_size=2)
    with Database(tmp_path / "tune.db") as database:
        for trials in (16, 20):
            budget, runner = Budget(trials=trials), FormulaRunner()
            tune_tasks([TASKS[0]], budget, runner, database=database, options=options)
    assert seen[8:] == [(0, 16), (1, 18)]


@dataclass
class Retimes(FormulaRunner):
    """Records which tasks are timed again."""

    again: list[str] = field(default_factory=list)

    def retime(self, task: Task, candidates: Sequence[State]) -> list[MeasureResult] | None:
        self.again.append(task.key)
        return super().retime(task, candidates)


def test_finalists_are_timed_again_once(tmp_path: Path) -> None:
    def again(trials: int, options: TuneOptions = QUICK) -> list[str]:
        runner = Retimes(noise=0.2, seed=trials)
        with Database(tmp_path / "tune.db") as database:
            tune_tasks(TASKS[:2], Budget(trials=trials), runner, database=database, options=options)
            [replayed] = rerun(database, database.sessions.current, NoBuilds(), options=options)
            assert replayed.divergence == ""
        return sorted(runner.again)

    both = sorted(entry.task.key for entry in TASKS[:2])
    assert again(24, replace(QUICK, retime=False)) == []
    assert again(24) == both
    assert again(24) == []
    assert again(48) and again(48) == []


@dataclass
class Long(Retimes):
    """All programs take about *length_s*."""

    length_s: float = 0.0

    def answer(self, task: Task, state: State) -> MeasureResult:
        result = super().answer(task, state)
        return replace(result, seconds=tuple(s + self.length_s for s in result.seconds))


@pytest.mark.parametrize(
    ("length_s", "trials", "again"), [(0.1, 27, 1), (0.2, 27, 1), (2.0, 27, 0)]
)
def test_long_kernels_leave_time_for_comparing_them(
    length_s: float, trials: int, again: int
) -> None:
    """The plan has at least three rounds, in at most a tenth of the time."""
    runner = Long(length_s=length_s)
    budget, options = Budget(time_limit_s=30), replace(RANDOM, round_size=1)
    tune_timed([TASKS[0]], budget, runner, options)
    assert (len(runner.seen), len(runner.again)) == (trials, again)


def test_a_round_does_not_take_longer_for_what_is_kept_for_comparing() -> None:
    def costs(retime: bool) -> list[float]:
        seen: list[float] = []

        class Watching(RoundRobin):
            def next(self, tasks: Sequence[TaskProgress], rng: np.random.Generator) -> Round | None:
                seen.append(tasks[0].cost)
                return super().next(tasks, rng)

        options = replace(RANDOM, round_size=4, scheduler=Watching, retime=retime)
        budget = Budget(trials=16, time_limit_s=60)
        tune_timed([TASKS[0]], budget, Long(length_s=0.2), options)
        return seen

    assert costs(True) == pytest.approx(costs(False))


def ended(state: State, seconds: float, *, is_own: bool = True) -> TrialEnd:
    return TrialEnd(state, MeasureResult(TrialKind.OK, (seconds,)), is_own=is_own)


def test_only_a_faster_program_than_the_last_finalist_is_compared() -> None:
    state = State.initial(TASKS[0].task.dag)
    history = TaskHistory(keep=2)
    for seconds in (3.0, 2.0):
        history.add(ended(state, seconds))
    assert not history.retimed
    history.replace_finalists(history.finalists)
    history.add(ended(state, 4.0))
    assert history.retimed
    history.add(ended(state, 2.5, is_own=False))
    assert not history.retimed


@dataclass
class Behind(FormulaRunner):
    """Another tuner has just measured every program asked for, until it made ``lead`` trials.

    Its machine is ``faster`` than this one.
    """

    database: Database = field(kw_only=True)
    lead: int = field(kw_only=True)
    faster: float = 2.0

    def measure(
        self,
        task: Task,
        candidates: Sequence[State],
        *,
        incumbent_s: float | None,
        observer: Observer | None = None,
    ) -> list[MeasureResult]:
        ahead, self.lead = candidates[: self.lead], max(self.lead - len(candidates), 0)
        for state in ahead:
            result = MeasureResult(TrialKind.OK, (true_seconds(task, state) / self.faster,))
            self.database.complete(self.database.start(task, state), result)
        return super().measure(task, candidates, incumbent_s=incumbent_s, observer=observer)


def test_a_tuner_that_follows_another_takes_over_its_programs(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    lead = 8 * (PATIENCE + 2)
    options = replace(QUICK, round_size=8, retime=False)
    with Database(path) as database, Database(path) as other:
        runner = Behind(database=other, lead=lead)
        tuned = tune_tasks(TASKS[:1], Budget(trials=24), runner, database=database, options=options)
        [outcome] = tuned.outcomes
        best = database.best(outcome.task.key)
        assert database.trials(outcome.task.key) == lead + 24
        [again] = rerun(database, 1, NoBuilds(), options=options)
    assert len(runner.seen) == outcome.history.trials == 24
    assert best is not None and outcome.best is not None
    assert outcome.best.seconds == best.median_s
    assert trial_digest(outcome.best.state) == best.digest
    assert again.divergence == "" and again.trials == 24


def test_a_gain_of_another_tuner_is_no_plateau() -> None:
    state = State.initial(TASKS[0].task.dag)
    history = TaskHistory()
    history.add(ended(state, 4.0))
    history.add(ended(state, 4.0))
    assert history.has_plateau(1)
    history.add(ended(state, 2.0, is_own=False))
    assert not history.has_plateau(1) and history.best_s == 2.0 and history.trials == 2


def test_reports_carry_the_whole_run() -> None:
    reports: list[Progress] = []
    budget = Budget(trials=16, time_limit_s=100)
    tune_anew(TASKS[:2], budget, FormulaRunner(), options=QUICK, listener=reports.append)
    last = reports[-1]
    assert last.total_trials == last.trial_limit == 16
    assert last.left_s and last.total_s
    assert 0 < last.left_s < 100 and last.total_s > 0
    trials = [r.total_trials for r in reports]
    assert trials == sorted(trials)


@dataclass(frozen=True)
class Counted(Alternatives[int]):
    """Alternatives that count how often their times are added up."""

    sums: list[float] = field(default_factory=list)

    def timed(self, seconds: Mapping[int, float | None]) -> Alternatives[int]:
        self.sums.append(1.0)
        return super().timed(seconds)


def test_latencies_are_added_up_only_where_a_best_time_changed() -> None:
    region = Counted((Alternative({"": "one"}, {0: 1}), Alternative({"": "other"}, {1: 1})))
    options = replace(RANDOM, networks=(TunedNetwork((0.0, 0.0), regions=(region,)),))
    reports: list[tuple[Progress, int]] = []
    tune_anew(
        TASKS[:2], Budget(trials=40), FormulaRunner(), options=options,
        listener=lambda progress: reports.append((progress, len(region.sums))),
    )  # fmt: skip
    unchanged = [
        after - before
        for (one, before), (other, after) in pairwise(reports)
        if one.phase is other.phase is Phase.SEARCHING and one.best_s == other.best_s
    ]
    assert len(unchanged) > 20 and not any(unchanged)
    totals = [progress.total_s for progress, _ in reports if progress.total_s is not None]
    assert totals == sorted(totals, reverse=True) and totals[0] > totals[-1] > 0


def test_predictions_are_the_models_best_and_end_with_the_default() -> None:
    task, model = matmul(64, 64, 64), AnalyticModel()
    source = sampler(task)
    options = PredictOptions(sketches=8, population=1024, generations=2, pretrained=False)
    states = list(predicted_best(task, source, options=options))
    assert str(states[-1].history) == ""
    rng = np.random.default_rng(0)
    sampled = [
        score(task, model, s, sample_valid(s, 300, rng)).scores.max() for s in source.draw(3, rng)
    ]
    [best] = model.predict(task, Programs.of(states[0]))
    assert best >= max(sampled)


def test_predictions_repeat_themselves() -> None:
    task = dense_relu(16, 32, 64)

    def texts() -> list[str]:
        return [str(state.history) for state in predicted_best(task, SketchSampler(task))]

    assert texts() == texts()


def test_the_parts_of_a_run_make_up_its_wall_clock_time(tmp_path: Path) -> None:
    reports: list[Progress] = []
    with Database(tmp_path / "tune.db") as database, Profiler() as outer:
        tuned = tune_tasks(
            TASKS,
            Budget(trials=24),
            FormulaRunner(),
            database=database,
            options=QUICK,
            listener=reports.append,
        )
    assert {Activity.SEARCH, Activity.MODEL, Activity.RECORD, Activity.RESUME} <= set(tuned.seconds)
    # The rest may be long where another process gets the core meanwhile.
    assert sum(tuned.seconds.values()) == pytest.approx(sum(outer.seconds.values()), rel=0.25)
    assert reports[-1].seconds is not None and reports[-1].seconds.keys() <= tuned.seconds.keys()
