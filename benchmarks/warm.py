"""Measure how much another network's records speed up tuning: ``python -m benchmarks.warm``.

Tunes a network, then another one: from scratch, and in several ways from the first one's records.
Networks are named as in ``benchmarks.zoo.light``, with the image size: ``squeezenet@160``.  At the
end, the best programs of all ways are timed again, alternating.  The table has the sum of all
kernels' times, weighted by their calls, after various numbers of trials per task.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx

from ansorpy.api.project import open_project
from ansorpy.api.request import Request
from ansorpy.api.train_model import load_trials
from ansorpy.cli.exit_codes import exit_code
from ansorpy.cost.boosted import BoostedTrees
from ansorpy.cost.protocol import CostModel
from ansorpy.cost.saved import SavedModel
from ansorpy.evaluation.tables import Table
from ansorpy.ir.task import Task
from ansorpy.measure.probe.calibrate import calibrated
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.known_trials import KnownTrials
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.search.population import Candidate
from ansorpy.search.strategy import Context
from ansorpy.search.task_search import SearchOptions
from ansorpy.search.transfers.schedule_reuse import ScheduleReuse
from ansorpy.target import Target
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.outcome import TaskOutcome
from ansorpy.tasks.tune import TuneOptions, WeightedTask, tune_tasks
from benchmarks.common.command import command_line
from benchmarks.common.pages import publish
from benchmarks.zoo.light import light_model

__all__ = ["WAYS", "Way", "main", "network", "totals"]


@dataclass(frozen=True)
class Way:
    """How a search uses the first network's records.

    Also a transfer source: ``schedules`` offers re-fitted schedules first, ``others`` lets the
    model learn from the existing records.

    Args:
        records: The first network's records are available; otherwise, only the search's own.
        file: The model starts as one trained on the first network's records.
    """

    records: bool
    schedules: bool = False
    others: bool = False
    file: bool = False
    own: bool = True

    def first(self, context: Context, trials: KnownTrials) -> Sequence[Candidate]:
        return ScheduleReuse().first(context, trials) if self.schedules else ()


WAYS = {
    "cold": Way(records=False, schedules=True, others=True),
    "warm": Way(records=True, schedules=True, others=True),
    "schedules": Way(records=True, schedules=True),
    "records": Way(records=True, others=True),
    "model": Way(records=False, schedules=True, others=True, file=True),
    "alone": Way(records=False),
}
"""In ``alone``, the tasks of the second network share only the model."""


Weights = Mapping[Task, float]
"""The tasks of a network, and the number of calls of each."""


def network(name: str, threads: int) -> Weights:
    """The light network ``NAME[@SIZE]``, with an image of ``SIZE`` x ``SIZE`` pixels."""
    name, _, size = name.partition("@")
    model = light_model(name, 0)
    if size:
        del model.graph.value_info[:], model.graph.output[0].type.tensor_type.shape.dim[:]
        for dim in model.graph.input[0].type.tensor_type.shape.dim[2:]:
            dim.dim_value = int(size)
        model = onnx.shape_inference.infer_shapes(model)
    request = Request.of(effort="none", threads=threads, target=calibrated(Target.host()))
    project = open_project(model, request)
    return {task: project.weights[task.key] for task in project.tasks}


def tuned(
    tasks: Weights,
    budget: Budget,
    records: Path,
    way: Way,
    model: Callable[[], CostModel],
    seed: int,
) -> tuple[TaskOutcome, ...]:
    """Tune *tasks* with the records in a file, and add the new trials to it."""
    entries = [WeightedTask(task, SketchSampler(task), weight) for task, weight in tasks.items()]
    options = TuneOptions(SearchOptions(seed=seed, transfer=way), model=model, retime=False)
    with Database(records) as database, LocalRunner(MeasureOptions(seed=seed)) as runner:
        return tune_tasks(entries, budget, runner, database=database, options=options).outcomes


def trained(records: Path) -> SavedModel:
    """Train a model on the trials in a file."""
    target = calibrated(Target.host())
    with Database(records) as database:
        model = load_trials(database, target)
    model.refit()
    return SavedModel.of(model, target.family)


def totals(
    weights: Sequence[float],
    outcomes: Sequence[TaskOutcome],
    again: Sequence[float],
    points: Sequence[int],
) -> list[float]:
    """Seconds of all kernels after each of *points* trials per task.

    Times are scaled to those of the best programs when timed *again*.
    """
    sums = np.zeros(len(points))
    for weight, outcome, final in zip(weights, outcomes, again, strict=True):
        after, best = outcome.history.trials_after, outcome.history.best_after
        if outcome.best is None:
            sums += np.inf
            continue
        at = np.searchsorted(after, points, side="right") - 1
        known = np.where(at >= 0, np.array(best)[np.maximum(at, 0)], np.inf)
        sums += weight * known * final / best[-1]
    return [float(total) for total in sums]


def compared(
    tasks: Weights, ways: Sequence[str], budget: Budget, records: Path, seed: int
) -> dict[str, tuple[TaskOutcome, ...]]:
    """Outcomes of each of the *ways*, one whole search after another."""
    found = {}
    with TemporaryDirectory() as folder:
        for name in ways:
            way, path = WAYS[name], Path(folder) / f"{name}.db"
            model: Callable[[], CostModel] = BoostedTrees
            if way.file:
                model = trained(records)
            if way.records:
                shutil.copy(records, path)
            found[name] = tuned(tasks, budget, path, way, model, seed)
    return found


def timed_again(outcomes: Sequence[Sequence[TaskOutcome]]) -> list[list[float]]:
    """Seconds of each way's best program for each task; programs of one task are timed in turn.

    Infinite if a way has no program.
    """
    again = np.full((len(outcomes), len(outcomes[0])), np.inf)
    with LocalRunner(MeasureOptions()) as runner:
        for number, same in enumerate(zip(*outcomes, strict=True)):
            best = {way: o.best.state for way, o in enumerate(same) if o.best is not None}
            results = runner.retime(same[0].task, list(best.values()))
            again[list(best), number] = [result.median_s for result in results]
    found: list[list[float]] = again.tolist()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    return exit_code(partial(_run, _parser().parse_args(arguments)))


def _run(options: argparse.Namespace) -> int:
    """Run the comparison and print its table."""
    first, second = (network(n, options.threads) for n in (options.first, options.second))
    known = {task.key for task in first}
    second = {task: weight for task, weight in second.items() if task.key not in known}
    with TemporaryDirectory() as folder:
        records = options.records or Path(folder) / "first.db"
        cold = WAYS["cold"]
        tuned(first, Budget(trials_per_task=options.before), records, cold, BoostedTrees, 0)
        budget = Budget(trials_per_task=options.trials_per_task)
        runs = [compared(second, options.ways, budget, records, s) for s in options.seeds]
    print(f"{options.second} after {options.first}: {len(second)} tasks it does not share")
    points = [2**n for n in range(1, 12) if 2**n <= options.trials_per_task]
    sums: dict[str, list[list[float]]] = {name: [] for name in options.ways}
    for found in runs:
        for (name, outcomes), again in zip(
            found.items(), timed_again(list(found.values())), strict=True
        ):
            sums[name].append(totals(list(second.values()), outcomes, again, points))
    heading = ("us of all kernels", *(f"after {n}" for n in points))
    rows = [
        (name, *(f"{mean * 1e6:.1f}" for mean in np.mean(values, axis=0)))
        for name, values in sums.items()
    ]
    table = Table("", heading, tuple(rows), frozenset(heading[1:]))
    publish([table], "benchmarks.warm", options.into)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command_line("warm", __doc__)
    parser.add_argument("--first", default="squeezenet")
    parser.add_argument("--second", default="squeezenet@160")
    parser.add_argument(
        "--before", type=int, default=16, help="trials per task of the first network"
    )
    parser.add_argument("--trials-per-task", type=int, default=8, help="of the second")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=["cold", "warm", "model"])
    parser.add_argument("--records", type=Path, help="keep the first network's records here")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--into", type=Path, metavar="FILE", help="replace the table in a document")
    return parser


if __name__ == "__main__":
    sys.exit(main())
