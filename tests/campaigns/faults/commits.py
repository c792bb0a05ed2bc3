"""A process that only commits trials, killed again and again while it creates and writes a file."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.rows import Record
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.schedule.state import State
from tests.campaigns.faults.checks import Kept, done
from tests.campaigns.faults.workload import small_tasks

__all__ = ["commit_under_kills"]

_KILLS = 15
_LONGEST_S = 0.06
_FACTORS = range(2, 14)


def commit_under_kills(path: Path, rng: random.Random) -> None:
    """Kill a process that commits trials to *path*, and let one commit what is left.

    Raises:
        AssertionError: A trial that it reported as committed is not there, or is there twice.
    """
    task, kept = small_tasks()[0], Kept(path)
    reported: set[int] = set()
    for _ in range(_KILLS):
        reported |= _committed(task, path, rng.uniform(0.0, _LONGEST_S))
        kept.check()
        rows = done(path) if path.exists() else {}
        assert reported <= rows.keys(), f"reported but not there: {reported - rows.keys()}"
    _committed(task, path, None)
    kept.check(spent=len(_FACTORS) ** 2)
    for _, _, _, kind, _, _, attempts, _ in done(path).values():
        twice = kind == TrialKind.CRASH.value and attempts == 2
        assert kind == TrialKind.OK.value or twice, f"{kind} after {attempts} starts"


def _committed(task: Task, path: Path, after_s: float | None) -> set[int]:
    """Numbers of the results that a process reported before it was killed *after_s* seconds."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _commit(task, path, writing)
    os.close(writing)
    if after_s is not None:
        time.sleep(after_s)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reading) as file:
        said = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), f"the process ended with {status}"
    return {int(line) for line in said[: said.rfind("\n") + 1].split()}


def _commit(task: Task, path: Path, report: int) -> None:
    """Commit a result of each schedule, and report its number; never returns."""
    status = 1
    try:
        with Database(path) as database:
            for state in _schedules(task):
                trial = database.start(task, state)
                if not isinstance(trial, Record):
                    record = database.complete(trial, MeasureResult(TrialKind.OK, (1e-3,)))
                    os.write(report, f"{record.number}\n".encode())
        status = 0
    finally:
        os._exit(status)


def _schedules(task: Task) -> Iterator[State]:
    for i, j in product(_FACTORS, _FACTORS):
        state, _ = State.initial(task.dag).split("C", "i", (i,))
        yield state.split("C", "j", (j,))[0]
