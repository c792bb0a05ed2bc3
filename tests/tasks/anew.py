"""Tuning from no records."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.measure.records.database import Database
from ansorpy.measure.run.interfaces import Runner
from ansorpy.search.events import Listener, silent
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.outcome import Tuning
from ansorpy.tasks.tune import TuneOptions, WeightedTask, tune_tasks

__all__ = ["tune_anew"]


def tune_anew(
    tasks: Sequence[WeightedTask], budget: Budget, runner: Runner, *,
    options: TuneOptions | None = None, listener: Listener = silent,
) -> Tuning:  # fmt: skip
    """:func:`tune_tasks` with an empty database."""
    database = Database()
    return tune_tasks(tasks, budget, runner, database, options=options, listener=listener)
