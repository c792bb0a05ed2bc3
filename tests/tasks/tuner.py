"""A small tuner in a process of its own: ``python -m tests.tasks.tuner DB --trials N``.

It prints what it has committed: one line ``ID`` a trial.
"""

from __future__ import annotations

import argparse
import sqlite3
from dataclasses import replace

from ansorpy.measure.records.database import Database
from ansorpy.measure.run.runner import LocalRunner
from ansorpy.rules.structure import StructureSampler
from ansorpy.search.events import Phase, Progress
from ansorpy.search.task_search import SearchOptions
from ansorpy.target import Target
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.tune import TuneOptions, WeightedTask, tune_tasks
from tests.search.small import EVOLUTION, TREES
from tests.search.tasks import dense_relu, matmul

__all__ = ["done", "main"]


def done(path: str) -> dict[int, tuple[object, ...]]:
    """The finished trials in the database *path*, read without ansorpy."""
    with sqlite3.connect(path, timeout=60) as raw:
        rows = raw.execute(
            "SELECT results.id, task_key, definition, digest, kind, seconds, scale, attempts"
            " FROM results JOIN trials ON trial = trials.id WHERE scale IS NULL"
        ).fetchall()
    raw.close()
    return {row[0]: row[1:] for row in rows}


def main() -> None:
    """Tune two operators until the database holds the requested number of trials."""
    parser = argparse.ArgumentParser()
    parser.add_argument("db")
    parser.add_argument("--trials", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=int, default=24)
    given = parser.parse_args()
    n, host = given.size, Target.host()
    tasks = [replace(t, target=host, threads=2) for t in (matmul(n, n, n), dense_relu(8, n, n))]

    def tell(progress: Progress) -> None:
        if progress.phase is Phase.SEARCHING:
            print(progress.total_trials, flush=True)

    with Database(given.db, seed=given.seed) as database, LocalRunner() as runner:
        tune_tasks(
            [WeightedTask(task, StructureSampler(task)) for task in tasks],
            Budget(trials=given.trials),
            runner,
            database=database,
            options=TuneOptions(
                SearchOptions(EVOLUTION, seed=given.seed), model=TREES, round_size=8
            ),
            listener=tell,
        )


if __name__ == "__main__":
    main()
