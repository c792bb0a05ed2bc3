"""A tuner whose machines are lost at random moments."""

from __future__ import annotations

import random
import sqlite3
import zlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from ansorpy.measure.fleet.patience import Patience
from ansorpy.measure.fleet.runner import FleetRunner
from ansorpy.measure.records.database import Database
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.schedule.state import State
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.tune import tune_tasks
from tests.campaigns.faults.tuner import options, tasks
from tests.measure.fleet.simulated import SimulatedFleet

__all__ = ["lost_nodes"]

_TRIALS = 32


def lost_nodes(path: Path, seed: int, rng: random.Random) -> None:
    """Tune on machines of which all but one may be lost, while they build or measure.

    Raises:
        AssertionError: A candidate was started or counted more than once.
    """
    names, building = ["a", "b", "c"], ["x"] * rng.randrange(2)
    doomed = {*rng.sample(names, rng.randrange(3)), *building}

    def fate(node: str, method: str, states: Sequence[State]) -> bool:
        return node in doomed and rng.random() < 0.1

    fleet = SimulatedFleet(names, _outcome, fate, seed=rng.randrange(1 << 30), building=building)
    with (
        Database(path, seed=seed) as database,
        FleetRunner(fleet, patience=Patience(rejoin_s=0.0, look_s=0.0)) as runner,
    ):
        tune_tasks(tasks(), Budget(trials=_TRIALS), runner, database, options=options(seed))
    with closing(sqlite3.connect(path)) as raw:
        counts = raw.execute(
            "SELECT count(DISTINCT trial), max(attempts) FROM results JOIN trials"
            " ON trial = trials.id"
        ).fetchone()
    assert counts == (_TRIALS, 1), f"trials, starts of one: {counts}"


def _outcome(node: str, state: State) -> MeasureResult:
    """The same on all machines: a number that depends on the schedule only."""
    seconds = 1e-6 * (1 + zlib.crc32(str(state.history).encode()) % 1000)
    return MeasureResult(TrialKind.OK, (seconds,))
