"""Train a cost model on all trials of a database, as a starting point for other searches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np

from ansorpy.cost.boosted import BoostedTrees
from ansorpy.cost.dataset import TaskSamples
from ansorpy.cost.holdout import Judged, Knowing, common_level, judge
from ansorpy.cost.metrics import rank_correlation
from ansorpy.cost.programs import Programs
from ansorpy.cost.saved import SavedModel
from ansorpy.cost.static_linear import TERMS, StaticLinear, fitted_weights, static_terms
from ansorpy.errors import ForeignFile, UsageError
from ansorpy.ir.task import Precision, Task
from ansorpy.measure.probe.calibrate import calibrated
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.rows import Record, TaskRow
from ansorpy.search.task_search import training_seconds
from ansorpy.target import Target, family_of

__all__ = ["FittedWeights", "TrainedModel", "fit_weights", "load_trials", "train_model"]

LEAST_TO_FIT = 2 * len(TERMS)
"""Correct programs needed to fit the weights of the static linear model."""


@dataclass(frozen=True)
class TrainedModel:
    """A trained model, and how well such models rank unseen programs.

    ``failed`` counts the training programs that did not run; ``held_out`` is empty when no task
    has enough trials to hold some out.
    """

    model: SavedModel
    failed: int
    held_out: tuple[Judged, ...]

    def save(self, path: Path) -> None:
        """Write the model to *path*; raises :class:`UsageError` if that fails."""
        try:
            path.write_text(self.model.text())
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror or error}") from None


def train_model(database: Database, target: Target | None = None) -> TrainedModel:
    """Train on every trial in *database* from machines like *target* (default: this one).

    Raises:
        UsageError: There are too few trials to learn from.
    """
    target = calibrated(target or Target.host())
    model = load_trials(database, target)
    tasks = model.data.tasks
    model.refit()
    saved = SavedModel.of(model, target.family)
    if not saved.programs or not saved.is_trained:
        others = sorted({_family(row) for row in database.tasks()} - {target.family, ""})
        raise UsageError(
            f"{database.path} has {saved.programs} trials for {target.family}, too few to learn "
            f"from (at least {model.options.min_programs} are needed)",
            hint=f"it has trials for {', '.join(others)}: name such a target with --target"
            if others
            else "tune something first",
        )
    failed = sum(int(np.isinf(samples.seconds).sum()) for samples in tasks.values())
    named = _named(database, tasks)
    shown = (Knowing.NOTHING, Knowing.OTHERS, Knowing.LOADED)
    return TrainedModel(saved, failed, tuple(judge(named, (common_level(named),), models=shown)))


def _named(database: Database, tasks: dict[str, TaskSamples]) -> dict[str, TaskSamples]:
    """*tasks* in their order, with unique names as keys."""
    rows = {row.key: row for row in database.tasks()}
    return {f"{rows[key].name} {key[:6]}": samples for key, samples in tasks.items()}


def load_trials(database: Database, target: Target) -> BoostedTrees:
    """Load every trial in *database* for machines like *target* into an untrained model.

    A trial's missing features are extracted from its schedule (a few milliseconds each) and stored;
    trials whose schedules can no longer be replayed are left out, and so are programs for all
    sizes: features are those of programs for one size.
    """
    model = BoostedTrees()
    version, width = model.remembers
    for row in database.tasks():
        if _family(row) == target.family:
            _complete(database, row, target, model)
            model.recall(database.samples.of([row.key], version, width))
    return model


def _family(row: TaskRow) -> str:
    """The :attr:`~ansorpy.target.Target.family` of a recorded task; empty if its key lacks it."""
    parts = row.key.split("/")
    return family_of(parts[1]) if len(parts) > 1 and parts[1].count("|") > 2 else ""


def _complete(database: Database, row: TaskRow, target: Target, model: BoostedTrees) -> None:
    """Store the samples from which *model* learns for those trials of a task that lack them."""
    version, _ = model.remembers
    known = database.samples.known(row.key, version)
    missing = [record for record in database.records(row.key) if record.id not in known]
    if not missing:
        return
    task = _task(database, row, target)
    for record, programs in _programs(database, missing):
        seconds = np.array([training_seconds(record.result)])
        database.samples.put([record.id], model.samples(task, programs, seconds))


def _programs(database: Database, records: Iterable[Record]) -> Iterator[tuple[Record, Programs]]:
    """The program of each record that can be replayed and is for one size."""
    for record in records:
        try:
            state = record.state(database.definitions.get(record.definition))
        except ForeignFile:
            continue
        if not state.definition.dims:
            yield record, Programs.of(state)


@dataclass(frozen=True)
class FittedWeights:
    """Weights of the static linear model, and the programs and tasks they were fitted to.

    ``correlation`` is the mean over tasks of the rank correlation with their times.
    """

    model: StaticLinear
    programs: int
    tasks: int
    correlation: float


def fit_weights(database: Database, target: Target | None = None) -> FittedWeights:
    """Fit ``static_linear`` to the correct trials in *database* from machines like *target*.

    *target* is this machine by default.

    Raises:
        UsageError: There are too few trials, or they are not for a CPU.
    """
    target = calibrated(target or Target.host())
    measured = []
    for row in database.tasks():
        if _family(row) == target.family:
            task = _task(database, row, target)
            found = list(_programs(database, database.records(row.key)))
            seconds = np.array([training_seconds(record.result) for record, _ in found])
            terms = [static_terms(task, programs) for _, programs in found]
            if np.isfinite(seconds).any():
                measured.append((np.concatenate(terms), seconds))
    programs = sum(int(np.isfinite(seconds).sum()) for _, seconds in measured)
    if programs < LEAST_TO_FIT:
        raise UsageError(
            f"{database.path} has {programs} correct programs for {target.family}, too few to fit "
            f"{len(TERMS)} weights (at least {LEAST_TO_FIT} are needed)",
            hint="tune something first",
        )
    weights = fitted_weights(measured)
    correlations = [rank_correlation(-(terms @ weights), -seconds) for terms, seconds in measured]
    model = StaticLinear(weights, target.family)
    return FittedWeights(model, programs, len(measured), float(np.nanmean(correlations)))


def _task(database: Database, row: TaskRow, target: Target) -> Task:
    dag = database.definitions.get(row.definition)
    known: dict[str, Precision] = {name: name for name in get_args(Precision)}
    precision = known.get(row.precision, "default")
    return Task(dag, target, row.threads, precision, row.reuse_distance_bytes, row.name)
