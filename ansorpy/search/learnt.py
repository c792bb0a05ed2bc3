"""Cost models trained on all trials of a database."""

from __future__ import annotations

from typing import get_args

import numpy as np

from ansorpy.cost.boosted import BoostedTrees
from ansorpy.errors import ForeignFile
from ansorpy.ir.task import Precision, Task
from ansorpy.measure.database import Database
from ansorpy.measure.records import TaskRow
from ansorpy.schedule.nest import build_nest
from ansorpy.search.driver import learnt_seconds
from ansorpy.target import Target, family_of

__all__ = ["family", "learnt_trials"]


def learnt_trials(database: Database, target: Target) -> BoostedTrees:
    """Load every trial in *database* for machines like *target* into an untrained model.

    Features missing from a trial are extracted from its schedule (some milliseconds each) and
    stored; trials whose schedules can no longer be replayed are left out.
    """
    model = BoostedTrees()
    version, width = model.remembers
    for row in database.tasks():
        if family(row) == target.family:
            _complete(database, row, target, model)
            model.recall(database.samples.of([row.key], version, width))
    return model


def family(row: TaskRow) -> str:
    """The :attr:`~ansorpy.target.Target.family` of a recorded task; empty if its key lacks it."""
    parts = row.key.split("/")
    return family_of(parts[1]) if len(parts) > 1 and parts[1].count("|") > 2 else ""


def _complete(database: Database, row: TaskRow, target: Target, model: BoostedTrees) -> None:
    """Store the samples *model* learns from with those trials of a task that lack them."""
    version, _ = model.remembers
    known = database.samples.known(row.key, version)
    missing = [record for record in database.records(row.key) if record.id not in known]
    if not missing:
        return
    task = _task(database, row, target)
    for record in missing:
        try:
            state = record.state(database.definition(record.definition))
        except ForeignFile:
            continue
        seconds = np.array([learnt_seconds(record.result)])
        database.samples.put([record.id], model.samples(task, build_nest(state, {}), seconds))


def _task(database: Database, row: TaskRow, target: Target) -> Task:
    dag = database.definition(row.definition)
    known: dict[str, Precision] = {name: name for name in get_args(Precision)}
    precision = known.get(row.precision, "default")
    return Task(dag, target, row.threads, precision, row.between_bytes, row.name)
