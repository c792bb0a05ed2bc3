"""What is computed beside builds holds the cores, and no time limit or lock holds it up."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from ansorpy.api.stoppable_runner import StoppableRunner
from ansorpy.deadline import OutOfTime, until
from ansorpy.measure.records.database import Database
from ansorpy.measure.run.interfaces import Runner
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from ansorpy.measure.workers.locks import lock_cores
from ansorpy.measure.workers.processes import usable_cores
from ansorpy.search.trials import MeasuredTrials
from tests.search.runners import FormulaRunner


def here() -> Runner:
    return LocalRunner(MeasureOptions())


def elsewhere() -> Runner:
    """A runner that times nothing on this machine, as the API wraps it."""
    return StoppableRunner(FormulaRunner(), lambda: None)  # type: ignore[arg-type]


@pytest.fixture(params=[here, elsewhere])
def trials(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> MeasuredTrials:
    """Trials of either runner; the locks are files of the test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    make: Callable[[], Runner] = request.param
    return MeasuredTrials(make(), Database())


def test_nobody_times_on_this_machine_beside_the_work(trials: MeasuredTrials) -> None:
    """Not even for trials on other machines: a node of theirs may be on this one."""
    ended = Event()
    work = trials.beside(lambda: ended.wait(30))
    with until(time.monotonic() + 0.1), pytest.raises(OutOfTime), lock_cores(usable_cores()):
        pass
    ended.set()
    assert work.result(30)
    with lock_cores(usable_cores()):
        pass


def test_the_work_waits_for_timing_no_longer_than_there_is_time(trials: MeasuredTrials) -> None:
    with lock_cores(usable_cores()):
        with until(time.monotonic() + 0.1):
            work = trials.beside(lambda: "done")
        assert work.result(30) == "done"
