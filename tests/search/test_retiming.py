"""Finalists that fail when they are timed again are none any more; the winner's code is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ansorpy.api.stoppable_runner import StoppableRunner
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.result import MeasureResult, TrialKind, out_of_time
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from ansorpy.schedule.state import State
from ansorpy.search.history import Best
from ansorpy.search.trials import MeasuredTrials
from tests.measure.definitions import task_of
from tests.measure.planted import PlantedBuilder, doubling, planted, planted_state
from tests.search.runners import FormulaRunner
from tests.search.tasks import matmul
from tests.search.test_search import rounds, search

DAG = doubling()
TASK = task_of(DAG)


@dataclass
class Dying(FormulaRunner):
    """Its worker dies of *deadly* programs, and of more than *most*; *left* runs are in time."""

    noise: float = 0.5
    deadly: set[State] = field(default_factory=set)
    most: int = 4
    left: int = 99

    def retime(self, task: Task, candidates: Sequence[State]) -> list[MeasureResult] | None:
        self.left -= 1
        if self.left < 0:
            return [out_of_time() for _ in candidates]
        if self.deadly & {*candidates} or len(candidates) > self.most:
            return [MeasureResult(TrialKind.CRASH, reason="signal 11") for _ in candidates]
        return super().retime(task, candidates)


@pytest.mark.parametrize("deadly", [[0], [3], [0, 2], [0, 1, 2]])
def test_those_that_kill_the_worker_are_dropped_and_the_others_timed(deadly: list[int]) -> None:
    runner, database = Dying(), Database()
    found = rounds(search(matmul(48, 48, 48), runner, database=database), 8)
    finalists = list(found.history.finalists)
    assert len(finalists) == 4
    runner.deadly = {finalists[n].state for n in deadly}
    found.retime()
    sound = {best.state for best in finalists} - runner.deadly
    assert {best.state for best in found.history.finalists} == sound and found.history.retimed
    for best in finalists:
        record = database.lookup(found.task, best.state)
        assert record is not None and record.ok == (record.scale is not None)
        assert record.kind is (TrialKind.OK if best.state in sound else TrialKind.CRASH)
        assert record.ok or record.reason == "signal 11"
    recorded = database.best(found.task.key)
    assert recorded is not None and recorded.median_s == pytest.approx(found.history.best_s)


@pytest.mark.parametrize("deadly", [[], [0, 1, 2, 3]])
def test_no_finalist_is_blamed_unless_another_one_runs_where_it_fails(deadly: list[int]) -> None:
    """If none fails alone, memory may not suffice for all; if all do, the machine is at fault."""
    runner, database = Dying(most=1), Database()
    found = rounds(search(matmul(48, 48, 48), runner, database=database), 8)
    finalists, records = list(found.history.finalists), database.records(found.task.key)
    runner.deadly = {finalists[n].state for n in deadly}
    found.retime()
    assert found.history.finalists == finalists and len(finalists) == 4
    assert not found.history.retimed and database.records(found.task.key) == records


@pytest.mark.parametrize("limit", [Dying(most=1), Dying(left=5)])
def test_times_stand_where_only_the_failure_could_be_found(limit: Dying) -> None:
    """One run of all, and one of each: then the worker dies again, or the time is up."""
    database = Database()
    found = rounds(search(matmul(48, 48, 48), limit, database=database), 8)
    first, *others = found.history.finalists
    limit.deadly = {first.state}
    found.retime()
    assert [best.seconds for best in found.history.finalists] == [b.seconds for b in others]
    record = database.lookup(found.task, first.state)
    assert record is not None and record.kind is TrialKind.CRASH


def finalist(database: Database, kind: str, seconds: float) -> Best:
    """A planted program, recorded by another process as taking so long."""
    state, code = planted_state(DAG, kind), planted(kind)
    result = MeasureResult(TrialKind.OK, (seconds,), object_digest=code.digest)
    trial = database.start(TASK, state)
    database.complete(trial, result)
    return Best(state, result)


@pytest.mark.parametrize("first", ["slow", "trap"])
def test_the_code_of_the_program_that_wins_is_stored(tmp_path: Path, first: str) -> None:
    options = MeasureOptions(lock_folder=tmp_path)
    with LocalRunner(options, PlantedBuilder()) as runner, Database() as database:
        finalists = [finalist(database, first, 1e-6), finalist(database, "good", 2e-6)]
        database.objects.put(planted(first))  # as it was the fastest so far
        trials = MeasuredTrials(StoppableRunner(runner, lambda: None), database)
        again = trials.retime(TASK, finalists)
        best = database.best(TASK.key)
        assert best is not None and best.object_digest == planted("good").digest
        assert database.objects.get(best.object_digest) == planted("good")
        kinds = [record.kind for record in database.records(TASK.key)]
        assert (kinds[0] is TrialKind.CRASH) == (first == "trap") == (len(again) == 1)
