"""How well the cost models rank recorded programs they have not seen.

``python -m benchmarks.model tune.db``: each task's later trials are held out and ranked by the
closed-form model, by trees that know nothing of the task, and by trees that know its first trials;
in both cases they know all trials of the tasks of other folds.  Nothing is timed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

import numpy as np

from ansorpy.cost.boosted import BoostedTrees
from ansorpy.cost.dataset import Dataset, TaskSamples
from ansorpy.cost.metrics import Ranking, ranking
from ansorpy.ir.task import Task
from ansorpy.measure.database import Database
from ansorpy.measure.records import TaskRow
from ansorpy.report.tables import Table, show
from ansorpy.schedule.nest import build_nest
from ansorpy.search.driver import learnt_seconds
from ansorpy.target import Target

__all__ = ["Judged", "judge", "known_tasks", "main"]

LEVELS = (8, 32, 64)
"""First trials of a task that warm trees know."""

FOLDS = 4
LEAST_HELD_OUT = 16


@dataclass(frozen=True)
class Judged:
    """The figures of one model on the held-out trials of one task; ``known`` is None for the
    closed-form model."""

    task: str
    model: str
    known: int | None
    held_out: int
    figures: Ranking


def known_tasks(database: Database) -> dict[str, TaskSamples]:
    """The trials of every task in the order they were made, by a readable name."""
    found = {}
    for row in database.tasks():
        learner = BoostedTrees()
        task = _task(database, row)
        for record in database.records(row.key):
            if record.is_done:
                nest = build_nest(record.state(database.definition(record.definition)), {})
                learner.learn(task, nest, np.array([learnt_seconds(record.result)]))
        if learner.data.tasks:
            shape = "x".join(map(str, task.dag.outputs[0].shape))
            found[f"{row.name} {shape} {row.key[:6]}"] = learner.data.tasks[task.key]
    return found


def _task(database: Database, row: TaskRow) -> Task:
    dag = database.definition(row.definition)
    precision: Literal["default", "strict"] = "strict" if row.precision == "strict" else "default"
    return Task(dag, Target.host(), row.threads, precision, row.cold_constants, row.name)


def judge(
    tasks: dict[str, TaskSamples], levels: Sequence[int] = LEVELS, seed: int = 0
) -> list[Judged]:
    """Every model's figures on every task that has enough trials to hold some out.

    A task's held-out trials are those after the largest of *levels* that leaves
    ``LEAST_HELD_OUT``; the same for every model.
    """
    held = {name: _held_from(samples, levels) for name, samples in tasks.items()}
    judged = [name for name, start in held.items() if start is not None]
    order = np.random.default_rng(seed).permutation(len(judged))
    folds = [{judged[at] for at in order[f::FOLDS]} for f in range(FOLDS)]
    found: list[Judged] = []
    for name in judged:
        start = held[name] or 0
        late = _part(tasks[name], start, None)
        found += _figures(name, "analytic", None, late, 1 / np.asarray(late.prior_s))
    for fold in folds:
        for level in (0, *levels):
            model = _trained(tasks, fold, level)
            for name in sorted(fold):
                start = held[name] or 0
                if level <= start:
                    late = _part(tasks[name], start, None)
                    scores = model.score(late.features, np.asarray(late.prior_s))
                    found += _figures(name, "boosted", level, late, scores)
    return found


def _held_from(samples: TaskSamples, levels: Sequence[int]) -> int | None:
    fits = [n for n in levels if n + LEAST_HELD_OUT <= len(samples.seconds)]
    return max(fits, default=None)


def _trained(tasks: dict[str, TaskSamples], fold: set[str], level: int) -> BoostedTrees:
    """Trees that know the first *level* trials of the tasks of *fold*, and all of the others."""
    model = BoostedTrees()
    parts = {n: _part(s, 0, level if n in fold else None) for n, s in tasks.items()}
    model.data = Dataset({name: part for name, part in parts.items() if part.seconds})
    model.refit()
    return model


def _part(samples: TaskSamples, first: int, end: int | None) -> TaskSamples:
    return TaskSamples(
        samples.features[first:end], samples.prior_s[first:end], samples.seconds[first:end]
    )


def _figures(
    task: str, model: str, known: int | None, late: TaskSamples, scores: np.ndarray
) -> Iterator[Judged]:
    """Nothing for a task of which no held-out trial ran."""
    seconds = np.asarray(late.seconds)
    if np.isfinite(seconds).any():
        yield Judged(task, model, known, len(seconds), ranking(scores, seconds))


_HEADING = ("correlation", "recall of 5", "speed of 1", "speed of 5")


def _overall(found: Sequence[Judged]) -> Table:
    """Means over tasks; a level's row is over the tasks that have it, beside the same tasks."""
    rows = []
    levels = sorted({j.known for j in found if j.known})
    for level in levels:
        names = {j.task for j in found if j.known == level}
        among = [j for j in found if j.task in names]
        for model, known in (("analytic", None), ("boosted", 0), ("boosted", level)):
            these = [j.figures for j in among if j.model == model and j.known == known]
            label = "" if known is None else "cold" if known == 0 else f"after {known}"
            rows.append((f"{len(names)} tasks", f"{model} {label}".strip(), *_means(these)))
    return Table("means over tasks", ("", "model", *_HEADING), tuple(rows), frozenset(_HEADING))


def _means(figures: Sequence[Ranking]) -> tuple[str, ...]:
    columns = [[getattr(f, field.name) for f in figures] for field in fields(Ranking)]
    return tuple(f"{np.nanmean(column):.3f}" for column in columns)


def _by_task(found: Sequence[Judged]) -> Table:
    """Rank correlations, a row a task."""
    columns = sorted({j.known for j in found if j.known is not None})
    heading = ("held out", "analytic", "cold", *(f"after {n}" for n in columns[1:]))
    rows = []
    for task in sorted({j.task for j in found}):
        of = {j.known: j for j in found if j.task == task}
        cells = [f"{of[n].figures.correlation:.2f}" if n in of else "" for n in (None, *columns)]
        rows.append((task, str(of[None].held_out), *cells))
    return Table("rank correlation", ("task", *heading), tuple(rows), frozenset(heading))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, or JSON; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model", description=__doc__)
    parser.add_argument("database", type=Path, nargs="+", help="records of tuning runs")
    parser.add_argument("--json", action="store_true", help="every figure of every task")
    parser.add_argument("--seed", type=int, default=0, help="which tasks are held out together")
    asked = parser.parse_args(arguments)
    tasks: dict[str, TaskSamples] = {}
    for path in asked.database:
        if not path.exists():
            parser.error(f"there is no {path}")
        with Database(path) as database:
            mark = f"{path.stem} " if len(asked.database) > 1 else ""
            tasks |= {f"{mark}{k}": samples for k, samples in known_tasks(database).items()}
    found = judge(tasks, seed=asked.seed)
    if not found:
        parser.error(f"no task has {min(LEVELS) + LEAST_HELD_OUT} trials or more")
    if asked.json:
        print(json.dumps([asdict(j) for j in found], indent=2))
    else:
        show(_by_task(found))
        show(_overall(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
