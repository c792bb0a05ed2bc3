"""A run that began with a trained model: its database keeps the model, and replays it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ansorpy.api.train_model import load_trials
from ansorpy.arrays import Floats
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.models import MODELS
from ansorpy.cost.programs import Programs
from ansorpy.cost.saved import SavedModel
from ansorpy.errors import UsageError
from ansorpy.ir.task import Task
from ansorpy.measure.build.built import Built
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.results import Believe
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.schedule.state import State
from ansorpy.search.strategies import STRATEGIES
from ansorpy.search.task_search import SearchOptions
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.replay import Rerun, rerun
from ansorpy.tasks.tune import TuneOptions, WeightedTask, tune_tasks
from tests.measure.raw import execute
from tests.search.runners import FormulaRunner
from tests.search.small import TREES
from tests.search.tasks import dense_relu, sampler, scale

TASK = dense_relu(16, 32, 64)
SEARCH = SearchOptions(STRATEGIES.factory("random"), seed=3)


class NoBuilds:
    """Builds nothing: histories are compared without a compiler."""

    def build(self, task: Task, states: Sequence[State]) -> list[Built | MeasureResult]:
        return [MeasureResult(TrialKind.BUILD_ERROR)] * len(states)

    def close(self) -> None: ...


def tune(path: Path, trials: int, options: TuneOptions) -> None:
    entries = [WeightedTask(TASK, sampler(TASK))]
    with Database(path) as database:
        tune_tasks(
            entries, Budget(trials=trials), FormulaRunner(noise=0.2), database=database,
            options=options,
        )  # fmt: skip


def replayed(path: Path, run: int) -> Rerun:
    with Database(path) as database:
        [again] = rerun(database, run, NoBuilds())
    return again


def tune_with_model(path: Path) -> SavedModel:
    """Record two runs in the database *path*; the second starts from a model of the first."""
    tune(path, 12, TuneOptions(SEARCH, model=TREES))
    with Database(path) as database:
        taught = load_trials(database, TASK.target)
    taught.refit()
    given = SavedModel.of(taught, TASK.target.family)
    tune(path, 20, TuneOptions(SEARCH, model=given))
    return given


def test_a_model_that_was_given_is_kept_with_the_run(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    given = tune_with_model(path)
    again = replayed(path, 2)
    assert (again.divergence, again.trials) == ("", 8)
    with Database(path) as database:
        assert database.models.get(given.digest) == given.text()
        execute(database.path, "DELETE FROM models")
    with pytest.raises(UsageError, match="run 2 used other parts than are registered here: model"):
        replayed(path, 2)


class Listing(AnalyticModel):
    """A model of a user's, which keeps what it learned in its own way."""

    def __init__(self) -> None:
        self.data: list[int] = []

    def learn(self, task: Task, programs: Programs, seconds: Floats) -> None:
        self.data.append(len(seconds))


def test_a_model_may_keep_what_it_learns_as_it_likes(tmp_path: Path) -> None:
    model = Listing()
    options = TuneOptions(SEARCH, model=MODELS.shared(model))
    with Database(tmp_path / "tune.db") as database:
        for trials in (6, 10):
            entries = [WeightedTask(TASK, sampler(TASK))]
            tune_tasks(entries, Budget(trials=trials), FormulaRunner(), database, options=options)
    assert sum(model.data) >= 10


def test_a_model_in_use_learns_every_trial_once(tmp_path: Path) -> None:
    model, other = TREES(), scale(64)
    options = TuneOptions(SEARCH, model=MODELS.shared(model))
    with Database(tmp_path / "tune.db") as database:
        for task, trials in ((TASK, 12), (TASK, 20), (other, 6), (TASK, 24)):
            entries = [WeightedTask(task, sampler(task))]
            tune_tasks(entries, Budget(trials=trials), FormulaRunner(), database, options=options)
    learned = {key: len(samples.seconds) for key, samples in model.data.tasks.items()}
    assert learned == {TASK.key: 24, other.key: 6}


def test_a_run_of_another_user_is_replayed_with_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tune.db"
    monkeypatch.setenv("ANSORPY_STATE", str(tmp_path / "stranger"))
    tune_with_model(path)
    monkeypatch.undo()
    with Database(path, believe=Believe.ALL) as database:
        [again] = rerun(database, 2, NoBuilds())
    assert (again.divergence, again.trials) == ("", 8)
