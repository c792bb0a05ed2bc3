"""Evaluate how well cost models rank recorded programs that they have not seen.

``python -m benchmarks.ranking squeezenet.db resnet50.db``: in each database, the later trials of
each task are held out and ranked by the analytic model, by trees not trained on the task, by trees
also trained on its first trials, and by a trained model that learns these in addition.  All trees
are trained on tasks of other folds.  Nothing is timed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ansorpy.api.train_model import load_trials
from ansorpy.cli.exit_codes import exit_code
from ansorpy.cost.boosted import BoostedOptions
from ansorpy.cost.dataset import TaskSamples
from ansorpy.cost.holdout import LEAST_HELD_OUT, LEVELS, judge
from ansorpy.errors import UsageError
from ansorpy.evaluation.ranking import overall_table
from ansorpy.evaluation.tables import Table
from ansorpy.measure.probe.calibrate import calibrated
from ansorpy.measure.records.database import Database
from ansorpy.target import Target
from benchmarks.common.command import command_line
from benchmarks.common.pages import publish

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    p = command_line("ranking", __doc__)
    p.add_argument("databases", type=Path, nargs="+", help="records of tuning runs")
    p.add_argument("--seed", type=int, default=0, help="seed that groups tasks into folds")
    p.add_argument("--trust", type=float, nargs="+", default=[BoostedOptions.trust],
                   help="weights of the trees' sum; default %(default)s")  # fmt: skip
    p.add_argument("--first", type=int, help="use only this many first trials of each task")
    p.add_argument("--into", type=Path, metavar="FILE", help="replace the table in a document")
    return exit_code(partial(_run, p.parse_args(arguments)))


def _run(options: argparse.Namespace) -> int:
    found = [
        (path.stem, f"{trust:g}", _ranked(path, trust, options))
        for path in options.databases
        for trust in options.trust
    ]
    rows = tuple((records, trust, *row) for records, trust, each in found for row in each.rows)
    [*_, (_, _, last)] = found
    table = Table("", ("records", "trust", *last.heading), rows, last.numeric)
    first = "" if options.first is None else f" first {options.first}"
    publish([table], f"benchmarks.ranking{first}", options.into)
    return 0


def _ranked(path: Path, trust: float, options: argparse.Namespace) -> Table:
    """Means over the tasks in the database *path*."""
    tasks = _known_tasks(path, options.first)
    found = judge(tasks, seed=options.seed, options=BoostedOptions(trust=trust))
    if not found:
        least = min(LEVELS) + LEAST_HELD_OUT
        raise UsageError(f"no task in {path} has {least} trials or more", hint="tune for longer")
    return overall_table(found)


def _known_tasks(path: Path, first: int | None) -> dict[str, TaskSamples]:
    """The trials of every task in the order they were made, or the *first* of them."""
    if not path.exists():
        raise UsageError(f"there is no {path}", hint="record one: ansorpy tune --db FILE")
    with Database(path) as database:
        tasks = load_trials(database, calibrated(Target.host())).data.tasks
    return {key: samples.first(first) for key, samples in tasks.items()}


if __name__ == "__main__":
    sys.exit(main())
