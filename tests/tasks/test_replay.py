"""A recorded run replays to the same events, whatever happened to the database since."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from shutil import copyfile

import numpy as np
import pytest
from pydantic import TypeAdapter

import ansorpy
from ansorpy.api.replay import replay
from ansorpy.cost.models import MODELS
from ansorpy.errors import ForeignFile, UsageError, VerificationFailed
from ansorpy.ir.builders import sqrt, sum
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.measure.build.built import Built
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.journal import ReplayJournal
from ansorpy.measure.records.results import Believe
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.run.interfaces import Observer
from ansorpy.measure.run.runner import LocalRunner
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import CPU
from ansorpy.schedule.state import State
from ansorpy.search.population import sample_valid
from ansorpy.search.selectors import SELECTORS
from ansorpy.search.strategies import STRATEGIES
from ansorpy.search.task_search import SearchOptions, TaskSearch
from ansorpy.search.transfers import TRANSFERS
from ansorpy.search.transfers.schedule_reuse import ScheduleReuse
from ansorpy.target import Target
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.objective import TunedNetwork
from ansorpy.tasks.objectives import OBJECTIVES
from ansorpy.tasks.replay import Rerun, rerun
from ansorpy.tasks.schedulers import SCHEDULERS
from ansorpy.tasks.schedulers.round_robin import RoundRobin
from ansorpy.tasks.tune import TuneOptions, WeightedTask, tune_tasks
from tests.search.runners import FormulaRunner
from tests.search.small import EVOLUTION, TREES
from tests.search.tasks import dense_relu, matmul, sampler, scale

ROOT = str(Path(ansorpy.__file__).parents[1])
QUICK = TuneOptions(SearchOptions(EVOLUTION, seed=5), model=TREES)


def entries(*tasks: Task) -> list[WeightedTask]:
    return [WeightedTask(task, sampler(task), 2.0) for task in tasks]


TASKS = entries(dense_relu(16, 32, 64), scale(64))


class NoBuilds:
    """Builds nothing: histories are compared without a compiler."""

    def build(self, task: Task, states: Sequence[State]) -> list[Built | MeasureResult]:
        return [MeasureResult(TrialKind.BUILD_ERROR)] * len(states)

    def close(self) -> None: ...


def tune(path: Path, budget: Budget, runner: FormulaRunner, options: TuneOptions = QUICK) -> None:
    with Database(path) as database:
        tune_tasks(TASKS, budget, runner, database=database, options=options)


def replayed(
    path: Path,
    run: int = 1,
    options: TuneOptions | None = QUICK,
    believe: Believe = Believe.OWN,
) -> Rerun:
    with Database(path, believe=believe) as database:
        [again] = rerun(database, run, NoBuilds(), options=options)
    return again


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tune.db"


@pytest.fixture(scope="module")
def noisy_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of one run that ended, for tests that damage a copy."""
    path = tmp_path_factory.mktemp("noisy") / "tune.db"
    tune(path, Budget(trials=14), FormulaRunner(noise=0.2))
    return path


@pytest.fixture
def recorded(noisy_run: Path, path: Path) -> Path:
    """A copy of that database."""
    return Path(copyfile(noisy_run, path))


def test_noise_failures_and_the_clock_come_from_the_events(path: Path) -> None:
    def crashes(state: State, number: int) -> MeasureResult | None:
        return MeasureResult(TrialKind.CRASH, reason="signal 11") if number % 7 == 3 else None

    tune(path, Budget(trials=12, time_limit_s=1000), FormulaRunner(noise=0.3, fails=crashes))
    before = path.read_bytes()
    again = replayed(path)
    assert again.divergence == "" and again.ended == "complete"
    assert (again.followed, again.trials) == (again.events, 12)
    assert [task.program != "" for task in again.tasks] == [True, True]
    assert repr(again).startswith("<Rerun of run 1, complete: 12 trials, ")
    assert path.read_bytes() == before


def test_a_run_that_prepared_its_rounds_ahead_replays(path: Path) -> None:
    ahead = replace(QUICK, ahead=True)
    tune(path, Budget(trials=16, time_limit_s=1000), FormulaRunner(noise=0.3), ahead)
    again = replayed(path, options=ahead)
    assert again.divergence == "" and again.trials == 16
    with pytest.raises(UsageError, match="differ from those of run 1: ahead"):
        replayed(path)
    tune(path, Budget(trials=20, time_limit_s=1000), FormulaRunner(noise=0.3))
    assert replayed(path, 2).divergence == ""


def test_a_resumed_run_starts_from_what_there_was_then(path: Path) -> None:
    for number, trials in enumerate((6, 9, 12)):
        tune(path, Budget(trials=trials), FormulaRunner(noise=0.3, seed=number))
    again = [replayed(path, run) for run in (1, 2, 3)]
    assert [a.divergence for a in again] == ["", "", ""]
    assert [a.trials for a in again] == [6, 3, 3]


def test_a_definition_that_repeats_itself_replays(path: Path) -> None:
    """The database stores equal parts of a definition once; the search must share them too."""
    x, mean = placeholder((32, 64), name="x"), placeholder((32,), name="mean")
    k = reduce_axis(64, name="k")
    squares = compute(
        (32,), lambda i: sum((x[i, k] - mean[i]) * (x[i, k] - mean[i]), axis=k), name="squares"
    )
    y = compute((32, 64), lambda i, j: (x[i, j] - mean[i]) / sqrt(squares[i]), name="y")
    tasks = entries(Task(ComputeDAG([y]), Target.parse("x86-64-v4"), 2, name="normalize"))
    with Database(path) as database:
        tune_tasks(tasks, Budget(trials=8), FormulaRunner(), database=database, options=QUICK)
    again = replayed(path)
    assert (again.divergence, again.trials) == ("", 8)


def test_a_run_beside_another_tuner_replays(path: Path) -> None:
    class Rival(FormulaRunner):
        """Before each batch another driver measures the batch's second program."""

        def measure(
            self,
            task: Task,
            candidates: Sequence[State],
            *,
            incumbent_s: float | None,
            observer: Observer | None = None,
        ) -> list[MeasureResult]:
            with Database(path) as other:
                for state in candidates[1:2]:
                    record = other.start(task, state)
                    other.complete(record, MeasureResult(TrialKind.OK, (1e-3,)))
            return super().measure(task, candidates, incumbent_s=incumbent_s, observer=observer)

    tune(path, Budget(trials=10), Rival(noise=0.3))
    again = replayed(path)
    assert again.divergence == "" and again.trials == 10


def test_a_run_beside_a_tuner_of_a_similar_task_replays(path: Path) -> None:
    similar = dense_relu(32, 64, 128)
    [other_entry] = entries(similar)
    rng = np.random.default_rng(4)
    sketches = other_entry.source.draw(3, rng)
    rows = [s.resolve(row) for s in sketches for row in sample_valid(s, 6, rng)]
    assert len(rows) >= ScheduleReuse().programs + 3, "or nothing is taken over"

    @dataclass
    class Beside(FormulaRunner):
        """Before each batch another tuner measures the similar task, and compares times again."""

        given: list[State] = field(default_factory=list)

        def measure(
            self,
            task: Task,
            candidates: Sequence[State],
            *,
            incumbent_s: float | None,
            observer: Observer | None = None,
        ) -> list[MeasureResult]:
            with Database(path) as other:
                for record in other.records(similar.key):
                    other.complete(
                        record, MeasureResult(TrialKind.OK, (float(self._rng.random()),))
                    )
                for state in self.given[:1]:
                    result = MeasureResult(TrialKind.OK, (1e-6 * len(self.given),))
                    other.complete(other.start(similar, state), result)
                    del self.given[0]
            return super().measure(task, candidates, incumbent_s=incumbent_s, observer=observer)

    with Database(path) as database:
        for state in rows[:-3]:
            result = MeasureResult(TrialKind.OK, (float(rng.random()),))
            database.complete(database.start(similar, state), result)
        database.add_task(similar)
        database.definitions.add_variants(
            similar.key, {d.name: d.dag for d in other_entry.source.definitions}
        )
    # The task that is like the other's has its first round after another's.
    tasks = [*entries(scale(4096)), *entries(dense_relu(16, 32, 64))]
    with Database(path) as database:
        runner = Beside(noise=0.3, given=list(rows[-3:]))
        options = replace(QUICK, scheduler=RoundRobin)
        tune_tasks(tasks, Budget(trials=20), runner, database=database, options=options)
        assert len(database.records(similar.key)) == len(rows) and not runner.given
        run = database.sessions.current
    again = replayed(path, run, replace(QUICK, scheduler=RoundRobin))
    assert again.divergence == "" and again.trials == 20


@pytest.mark.parametrize(
    ("strategy", "selector", "model", "scheduler", "transfer"),
    [
        ("random", "top_k", "analytic", "round_robin", "none"),
        ("annealing", "submodular", "random", "gradient", "history_best"),
        ("sampling", "ei", "rf", "round_robin", "both"),
        ("sampling", "kmeans", "family", "gradient", "both"),
    ],
)
def test_parts_chosen_by_name_are_found_again(
    path: Path, strategy: str, selector: str, model: str, scheduler: str, transfer: str
) -> None:
    search = SearchOptions(
        STRATEGIES.factory(strategy), SELECTORS.one(selector), TRANSFERS.one(transfer), seed=3
    )
    options = TuneOptions(search, SCHEDULERS.factory(scheduler), model=MODELS.factory(model))
    tune(path, Budget(trials=8), FormulaRunner(noise=0.2), options)
    again = replayed(path, options=None)
    assert (again.divergence, again.trials) == ("", 8)


class Sampling(FormulaRunner):
    """Takes four samples of each program."""

    def answer(self, task: Task, state: State) -> MeasureResult:
        result = super().answer(task, state)
        noise = self._rng.uniform(0.9, 1.1, 4)
        return replace(result, seconds=tuple(float(s * x) for s in result.seconds for x in noise))


def test_all_samples_are_told_though_the_best_programs_were_timed_again(path: Path) -> None:
    droplet = TuneOptions(SearchOptions(STRATEGIES.factory("droplet"), seed=3))
    tune(path, Budget(trials=10), Sampling(noise=0.1), droplet)
    with Database(path) as database:
        tells = [event for event in database.sessions.events(1) if event.kind == "tell"]
        told = TypeAdapter(list[list[int]]).validate_python([e.body["results"] for e in tells])
        records = [database.record(number) for batch in told for number in batch]
    assert {len(record.seconds) for record in records} == {4}
    again = replayed(path, options=None)
    assert (again.divergence, again.trials) == ("", 10)


def test_a_run_for_several_networks_is_replayed_with_their_aims(path: Path) -> None:
    networks = (
        TunedNetwork((1.0, 0.0), bound_s=0.25, name="a"),
        TunedNetwork((0.0, 2.0), 3.0, name="b"),
    )
    search = SearchOptions(STRATEGIES.factory("random"), seed=3)
    options = TuneOptions(search, objective=OBJECTIVES.one("latency_bounds"), networks=networks)
    tune(path, Budget(trials=8), FormulaRunner(noise=0.2), options)
    again = replayed(path, options=None)
    assert (again.divergence, again.trials) == ("", 8)


def test_a_stopped_run_replays_up_to_the_stop(path: Path) -> None:
    def stop(state: State, number: int) -> MeasureResult | None:
        if number == 12:
            raise KeyboardInterrupt
        return None

    tune(path, Budget(trials=64), FormulaRunner(noise=0.2, fails=stop))
    again = replayed(path)
    assert (again.divergence, again.ended, again.trials) == ("", "stopped", 11)
    assert again.followed == again.events and again.tasks


def test_a_run_that_was_stopped_while_it_read_earlier_trials_replays(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resume, number = TaskSearch.resume, count()

    def interrupted(search: TaskSearch) -> None:
        if next(number):
            raise KeyboardInterrupt
        resume(search)

    tune(path, Budget(trials=8), FormulaRunner(noise=0.2))
    with monkeypatch.context() as pressed, pytest.raises(KeyboardInterrupt):
        pressed.setattr(TaskSearch, "resume", interrupted)
        tune(path, Budget(trials=16), FormulaRunner(noise=0.2))
    again = replayed(path, 2)
    assert (again.divergence, again.ended, again.trials) == ("", "killed", 0)


def test_who_stops_a_replay_sees_no_difference(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(journal: ReplayJournal) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(ReplayJournal, "seconds", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replayed(recorded)


@pytest.mark.parametrize("lost", [1, 2, 5, 9])
def test_a_killed_run_replays_up_to_its_last_event(recorded: Path, lost: int) -> None:
    with sqlite3.connect(recorded) as raw:
        raw.execute(
            "DELETE FROM events WHERE id IN (SELECT id FROM events ORDER BY id DESC LIMIT ?)",
            (lost,),
        )
    raw.close()
    again = replayed(recorded)
    assert (again.divergence, again.ended) == ("", "killed")
    assert again.followed == again.events and again.tasks == ()


def test_the_first_difference_is_named(recorded: Path) -> None:
    with sqlite3.connect(recorded) as raw:
        number, text = raw.execute(
            "SELECT id, body FROM events WHERE kind = 'ask' ORDER BY id LIMIT 1 OFFSET 3"
        ).fetchone()
        body = json.loads(text)
        programs = body["programs"]
        programs[0] = "00000000-0000000000000000"
        raw.execute("UPDATE events SET body = ? WHERE id = ?", (json.dumps(body), number))
    raw.close()
    again = replayed(recorded)
    assert "00000000-0000000000000000" in again.divergence and again.tasks == ()
    assert f'event {again.followed + 1}: recorded ask {{"task": "scale_64"' in again.divergence
    assert not any(entry.task.key in again.divergence for entry in TASKS)
    with pytest.raises(VerificationFailed, match="run 1 differs, starting at event"):
        again.demand()


@pytest.mark.parametrize(
    "body", ["{}", "[", '{"results": ["x"]}', '{"results": [99999]}', '{"results": [1, 1]}']
)
def test_damaged_events_are_one_plain_error(recorded: Path, body: str) -> None:
    with sqlite3.connect(recorded) as raw:
        raw.execute("UPDATE events SET body = ? WHERE kind = 'tell'", (body,))
    raw.close()
    with pytest.raises(ForeignFile):
        replayed(recorded)


def test_a_result_that_is_gone_is_named(recorded: Path) -> None:
    with sqlite3.connect(recorded) as raw:
        raw.execute("DELETE FROM results WHERE id = 2")
    raw.close()
    with pytest.raises(ForeignFile, match="lacks the result 2, to which an event refers"):
        replayed(recorded)


def test_an_incompatible_request_is_one_plain_error(recorded: Path) -> None:
    with sqlite3.connect(recorded) as raw:
        raw.execute("UPDATE events SET body = json_remove(body, '$.budget') WHERE kind = 'request'")
    raw.close()
    with pytest.raises(ForeignFile, match="run 1 was recorded by an incompatible version"):
        replayed(recorded)


def test_other_results_lead_to_another_history(recorded: Path) -> None:
    with sqlite3.connect(recorded) as raw:
        raw.execute("UPDATE results SET seconds = '[1e-9]', median_s = 1e-9 WHERE id = 2")
    raw.close()
    with pytest.raises(ForeignFile, match="has no signature of yours on the result 2"):
        replayed(recorded)
    assert replayed(recorded, believe=Believe.ALL).divergence


class _Own(RoundRobin):
    """A scheduler that no table names."""


def test_runs_that_cannot_be_replayed_say_why(path: Path) -> None:
    other = replace(TuneOptions(SearchOptions(seed=7)), scheduler=_Own)
    tune(path, Budget(trials=6), FormulaRunner(), other)
    own = [
        WeightedTask(e.task, SketchSampler(e.task, replace(CPU, sketch=CPU.sketch[1:])))
        for e in TASKS
    ]
    with Database(path) as database:
        tune_tasks(own, Budget(trials=10), FormulaRunner(), database=database, options=QUICK)
    with Database(path) as database:
        assert database.sessions.current == 3
        with pytest.raises(UsageError, match="run 3 recorded no search\nhint: .*searched: 1, 2$"):
            list(rerun(database, 3, NoBuilds()))
        with pytest.raises(UsageError, match="there is no run 9\nhint: .*searched: 1, 2$"):
            list(rerun(database, 9, NoBuilds()))
    with pytest.raises(UsageError, match="its caller's own rules"):
        replayed(path, 2)
    with pytest.raises(UsageError, match="other parts than are registered here: scheduler"):
        replayed(path, 1, None)
    with pytest.raises(UsageError, match="given parts differ from those of run 1: .*scheduler"):
        replayed(path, 1, QUICK)
    assert replayed(path, 1, other).divergence == ""


def test_real_runs_have_the_same_history_and_bytes_here_and_in_another_process(path: Path) -> None:
    host = Target.host()
    options = TuneOptions(SearchOptions(STRATEGIES.factory("random"), seed=9))
    tasks = [replace(t, target=host, threads=1) for t in (matmul(32, 32, 32), dense_relu(8, 16, 8))]
    with LocalRunner() as runner:
        for budget in (Budget(trials=6, time_limit_s=100), Budget(time_limit_s=0.5)):
            with Database(path) as database:
                tune_tasks(entries(*tasks), budget, runner, database=database, options=options)
    [again] = replay(path, 1)
    assert again.is_same and again.divergence == "" and len(again.tasks) == 2
    finished = subprocess.run(
        [sys.executable, "-m", "ansorpy", "db", "replay", "--db", str(path), "--run", "2",
         "--json"],
        capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": ROOT, "PYTHONHASHSEED": "2"},
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    [resumed] = json.loads(finished.stdout)
    assert resumed["same"] and resumed["divergence"] == "" and len(resumed["tasks"]) == 2
    programs = [(t.timed, t.rebuilt) for t in again.tasks]
    programs += [(t["timed"], t["rebuilt"]) for t in resumed["tasks"]]
    assert all(timed == rebuilt != "" for timed, rebuilt in programs)


class Named(FormulaRunner):
    """Its results name the code that was timed."""

    def answer(self, task: Task, state: State) -> MeasureResult:
        return replace(super().answer(task, state), object_digest=str(state.history))


def test_the_timed_code_is_that_of_the_run_whatever_is_recorded_later(path: Path) -> None:
    tune(path, Budget(trials=8), Named())
    before = replayed(path)
    assert before.tasks and all(task.timed for task in before.tasks)
    with Database(path) as database:
        for entry in TASKS:
            best = database.best(entry.task.key)
            assert best is not None
            database.complete(best, MeasureResult(TrialKind.REFUTED, reason="reads outside"))
    assert replayed(path).tasks == before.tasks


class Dying(FormulaRunner):
    """Its worker dies of the first program that it times again."""

    deadly: State | None = None

    def retime(self, task: Task, candidates: Sequence[State]) -> list[MeasureResult] | None:
        if self.deadly is None:
            self.deadly = candidates[0]
        if self.deadly in candidates:
            return [MeasureResult(TrialKind.CRASH, reason="signal 11") for _ in candidates]
        return super().retime(task, candidates)


def test_a_finalist_that_failed_is_none_in_the_replay_either(path: Path) -> None:
    runner = Dying(noise=0.3)
    tune(path, Budget(trials=14), runner)
    assert runner.deadly is not None
    with Database(path) as database:
        crashes = [database.trials(entry.task.key, kind=TrialKind.CRASH) for entry in TASKS]
        best = [database.best(entry.task.key) for entry in TASKS]
        programs = {record.program for record in best if record is not None}
        assert sorted(crashes) == [0, 1] and database.program(runner.deadly) not in programs
    again = replayed(path)
    assert again.divergence == "" and {task.program for task in again.tasks} == programs


def test_other_code_is_refused(path: Path) -> None:
    tune(path, Budget(trials=8), FormulaRunner())
    again = replayed(path)
    assert again.divergence == "" and not again.is_same
    with pytest.raises(VerificationFailed, match="different object code for"):
        again.demand()
