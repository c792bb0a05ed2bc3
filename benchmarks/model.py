"""Evaluate how well cost models rank recorded programs that they have not seen.

``python -m benchmarks.model tune.db``: each task's later trials are held out and ranked by the
analytic model, by trees not trained on the task, by trees also trained on its first trials, and
by a trained model that learns these in addition.  All trees are trained on tasks of other folds.
Nothing is timed.  ``ansorpy dataset train`` reports the same for one database.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from ansorpy.api.train_model import load_trials
from ansorpy.cost.boosted import BoostedOptions
from ansorpy.cost.dataset import TaskSamples
from ansorpy.cost.holdout import LEAST_HELD_OUT, LEVELS, judge
from ansorpy.evaluation.ranking import figures, overall_table, tasks_table
from ansorpy.evaluation.tables import show
from ansorpy.measure.probe.calibrate import calibrated
from ansorpy.measure.records.database import Database
from ansorpy.target import Target

__all__ = ["known_tasks", "main"]


def known_tasks(database: Database) -> dict[str, TaskSamples]:
    """The trials of every task in the order they were made, by a readable name."""
    found = load_trials(database, calibrated(Target.host())).data.tasks
    rows = {row.key: row for row in database.tasks()}
    return {f"{rows[key].name} {key[:6]}": samples for key, samples in found.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, or JSON; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model", description=__doc__)
    parser.add_argument("database", type=Path, nargs="+", help="records of tuning runs")
    parser.add_argument("--json", action="store_true", help="print every metric of every task")
    parser.add_argument("--seed", type=int, default=0, help="seed that groups tasks into folds")
    parser.add_argument("--trust", type=float, default=BoostedOptions.trust,
                        help="weight of the trees' sum; default %(default)s")  # fmt: skip
    parser.add_argument("--first", type=int, help="use only this many first trials of each task")
    asked = parser.parse_args(arguments)
    tasks: dict[str, TaskSamples] = {}
    for path in asked.database:
        if not path.exists():
            parser.error(f"there is no {path}")
        with Database(path) as database:
            mark = f"{path.stem} " if len(asked.database) > 1 else ""
            tasks |= {
                f"{mark}{k}": samples.first(asked.first)
                for k, samples in known_tasks(database).items()
            }
    found = judge(tasks, seed=asked.seed, options=BoostedOptions(trust=asked.trust))
    if not found:
        parser.error(f"no task has {min(LEVELS) + LEAST_HELD_OUT} trials or more")
    if asked.json:
        print(json.dumps(figures(found), indent=2))
    else:
        show(tasks_table(found))
        show(overall_table(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
