"""A database with two runs of a small network, of which some programs failed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.schedule.state import State
from ansorpy.search.task_search import SearchOptions
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.objective import TunedNetwork
from ansorpy.tasks.tune import TuneOptions, WeightedTask, tune_tasks
from tests.search.runners import FormulaRunner
from tests.search.small import EVOLUTION, TREES
from tests.search.tasks import dense_relu, matmul, sampler, scale

TASKS = (dense_relu(16, 32, 64), scale(64), matmul(8, 8, 8))
CALLS = (3.0, 1.0, 2.0)


def _fails(state: State, number: int) -> MeasureResult | None:
    if number % 7 == 3:
        return MeasureResult(TrialKind.CRASH, reason="signal 11: <script>boom</script>\nmore")
    return MeasureResult(TrialKind.SLOW, (1.0,)) if number % 11 == 5 else None


def tune(path: Path, trials: int, tasks: tuple[Task, ...] = TASKS) -> None:
    """Search for programs of *tasks* with made-up times."""
    network = TunedNetwork(CALLS[: len(tasks)], name="a </script> network")
    search = SearchOptions(EVOLUTION, seed=5)
    options = TuneOptions(search, model=TREES, networks=(network,), round_size=5)
    entries = [WeightedTask(t, sampler(t), n) for t, n in zip(tasks, CALLS, strict=False)]
    runner = FormulaRunner(noise=0.2, fails=_fails)
    with Database(path) as database:
        tune_tasks(entries, Budget(trials=trials), runner, database=database, options=options)


@pytest.fixture(scope="session")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of the database; each of its runs made 15 trials."""
    path = tmp_path_factory.mktemp("page") / "tune.db"
    tune(path, 15)
    tune(path, 30)
    return path


@pytest.fixture
def database(tuned: Path) -> Iterator[Database]:
    with Database(tuned) as opened:
        yield opened
