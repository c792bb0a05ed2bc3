"""Train and evaluate cost models on recorded programs: datasets, and trials of tuning databases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ansorpy.api.evaluate.databases import open_database
from ansorpy.api.parts import Parts
from ansorpy.arrays import Floats
from ansorpy.config import seed_or_default
from ansorpy.cost.analytic.cpu.model import TERMS
from ansorpy.cost.boosted import BoostedOptions, BoostedTrees
from ansorpy.cost.dataset import TaskSamples
from ansorpy.cost.holdout import Judged, Knowing, common_level, judge
from ansorpy.cost.learner import SAMPLE_VERSION, samples_of
from ansorpy.cost.metrics import Ranking, rank_correlation, ranking
from ansorpy.cost.models import MODELS
from ansorpy.cost.neural.network import NetworkModel
from ansorpy.cost.programs import Programs
from ansorpy.cost.protocol import CostModel, predictions
from ansorpy.cost.saved import SavedModel
from ansorpy.cost.split_kinds import Split
from ansorpy.cost.splits import split
from ansorpy.cost.static_linear import StaticLinear, fitted_weights, static_terms
from ansorpy.errors import ForeignFile, UsageError
from ansorpy.evaluation.ranking import Evaluated
from ansorpy.ir.task import Task
from ansorpy.measure.probe.calibrate import calibrated
from ansorpy.measure.program_dataset import MeasuredTask, ProgramDataset, read_dataset
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.rows import Record, TaskRow
from ansorpy.target import Target, family_of
from ansorpy.writable import write_whole

__all__ = [
    "FittedWeights", "TrainedModel", "evaluate_models", "fit_weights", "load_dataset",
    "load_trials", "opened", "read_datasets", "train_model", "train_network",
]  # fmt: skip

Source: TypeAlias = Database | ProgramDataset
"""What models learn from."""

_OfTask: TypeAlias = tuple[Task, Iterable[tuple[Programs, Floats]]]
"""A task, and its programs with their seconds."""

_EXAMPLES = 1 << 20
"""Most programs that a network's training counts in all its epochs; no search waits for it."""

LEAST_TO_FIT = 2 * len(TERMS)
"""Correct programs needed to fit the weights of the static linear model."""

_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True)
class TrainedModel:
    """A trained model, and how well such models rank unseen programs.

    ``failed`` counts the training programs that did not run; ``held_out`` is empty when no task
    of a database has enough trials to hold some out.
    """

    model: SavedModel
    failed: int
    held_out: tuple[Judged, ...]

    def save(self, path: Path) -> None:
        """Write the model to *path*; raises :class:`UsageError` if that fails."""
        write_whole(path, self.model.text())


@contextmanager
def opened(paths: Sequence[Path]) -> Iterator[Source]:
    """The programs of the datasets in *paths*, or the one tuning database, which is open meanwhile.

    Raises:
        ForeignFile: One is neither, or cannot be read.
        UsageError: There are others beside a database.
    """
    databases = [path for path in paths if _is_database(path)]
    if not databases:
        yield read_datasets(paths)
        return
    if len(paths) > 1:
        raise UsageError(
            f"{databases[0]} is a database, and other files are named beside it",
            hint="train on several datasets, or on one database",
        )
    with open_database(paths[0]) as database:
        yield database


def _is_database(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError as error:
        raise ForeignFile.unreadable(path, error) from None


def read_datasets(paths: Sequence[Path]) -> ProgramDataset:
    """All programs of the datasets in *paths*; of a task that several have, those of the last.

    Raises:
        ForeignFile: One is not a dataset.
    """
    whole = ProgramDataset()
    for path in paths:
        for each in read_dataset(path).tasks.values():
            whole.add(each)
    return whole


def train_model(
    source: Source, target: Target | None = None, *, seed: int | None = None
) -> TrainedModel:
    """Train on all programs in *source* from machines like *target* (default: this one).

    *seed* (default: ``ANSORPY_SEED``, or 0) is added to that of
    :class:`~ansorpy.cost.boosted.BoostedOptions`.

    Raises:
        UsageError: There are too few programs to learn from.
    """
    target = calibrated(target or Target.host())
    if isinstance(source, ProgramDataset):
        model = load_dataset(source, target)
    else:
        model = load_trials(source, target)
    tasks = model.data.tasks
    options = BoostedOptions.for_programs(len(model.data))
    model.options = replace(options, seed=options.seed + seed_or_default(seed))
    model.refit()
    saved = SavedModel.of(model, target.family)
    if not saved.programs or not saved.is_trained:
        raise _too_few(source, target, saved.programs, model.options.min_programs)
    failed = sum(int(np.isinf(samples.seconds).sum()) for samples in tasks.values())
    if isinstance(source, ProgramDataset):
        return TrainedModel(saved, failed, ())
    named = _named(source, tasks)
    shown = (Knowing.NOTHING, Knowing.OTHERS, Knowing.LOADED)
    return TrainedModel(saved, failed, tuple(judge(named, (common_level(named),), models=shown)))


def evaluate_models(
    models: Sequence[str],
    dataset: ProgramDataset,
    how: Split,
    *,
    seed: int | None = None,
    listener: Callable[[str], None] = lambda _: None,
) -> list[Evaluated]:
    """Rank the programs of *dataset* that are held out, with each of *models*.

    A model is named as ``--cost-model`` does: a registered one learns from the programs that are
    not held out, one from a file is evaluated as it is.  Tasks without a correct program among
    those held out are left out.  *seed* (default: ``ANSORPY_SEED``, or 0) draws what is held out.

    Raises:
        UsageError: A model is unknown, or there is only one target to split by.
        ForeignFile: A file is not a model.
    """
    parts = [(name, Parts(cost_model=name).model) for name in models]
    learned, held = split(dataset, how, seed=seed_or_default(seed))
    held_tasks = [each for each in held.tasks.values() if np.isfinite(each.seconds).any()]
    found = []
    for name, made in parts:
        model = made()
        if name in MODELS:
            listener(f"{name}: learns from {len(learned)} programs")
            _teach(model, ((each.task, _parts(each)) for each in learned.tasks.values()))
        listener(f"{name}: ranks {len(held)} programs")
        found += [Evaluated(name, *_ranked(model, each)) for each in held_tasks]
    return found


def _ranked(model: CostModel, each: MeasuredTask) -> tuple[str, int, Ranking]:
    programs = [Programs(sketch.space(), sketch.table) for sketch in each.sketches]
    scores = np.concatenate(predictions(model, each.task, programs))
    return each.task.name, len(each), ranking(scores, each.seconds)


def load_dataset(dataset: ProgramDataset, target: Target) -> BoostedTrees:
    """Load every program in *dataset* for machines like *target* into an untrained model."""
    model = BoostedTrees()
    _learn(model, _measured(dataset, target))
    return model


def _learn(model: CostModel, measured: Iterable[_OfTask]) -> None:
    for task, parts in measured:
        for programs, seconds in parts:
            model.learn(task, programs, seconds)


def _teach(model: CostModel, measured: Iterable[_OfTask]) -> None:
    """Train *model* once on what was *measured*, for as long and as much as it gains from it."""
    if isinstance(model, NetworkModel):
        model.fitting = replace(model.fitting, examples=_EXAMPLES)
    _learn(model, measured)
    if isinstance(model, BoostedTrees):
        model.options = BoostedOptions.for_programs(len(model.data))
    model.refit()


def _measured(source: Source, target: Target, *, of_all: bool = False) -> Iterator[_OfTask]:
    """The programs of each task in *source* for machines like *target*, or *of_all* machines."""
    if isinstance(source, ProgramDataset):
        for each in source.tasks.values():
            if of_all or each.task.target.family == target.family:
                yield each.task, _parts(each)
        return
    for row in source.tasks():
        family = _family(row)
        if family == target.family or (of_all and family):
            found = _programs(source, source.records(row.key))
            parts = ((p, np.array([record.result.known_s])) for record, p in found)
            machine = target.with_key(_target_key(row)) if of_all else target
            yield _task(source, row, machine), parts


def _parts(each: MeasuredTask) -> Iterator[tuple[Programs, Floats]]:
    for sketch in each.sketches:
        yield Programs(sketch.space(), sketch.table), sketch.seconds


@dataclass(frozen=True)
class FittedWeights:
    """Weights of the static linear model, and the programs and tasks they were fitted to.

    ``correlation`` is the mean over tasks of the rank correlation with their times.
    """

    model: StaticLinear
    programs: int
    tasks: int
    correlation: float


def fit_weights(source: Source, target: Target | None = None) -> FittedWeights:
    """Fit ``static_linear`` to the correct programs in *source* from machines like *target*.

    *target* is this machine by default.

    Raises:
        UsageError: There are too few programs, or they are not for a CPU.
    """
    target = calibrated(target or Target.host())
    measured = []
    for task, parts in _measured(source, target):
        found = [(static_terms(task, programs), seconds) for programs, seconds in parts]
        if any(np.isfinite(seconds).any() for _, seconds in found):
            terms, times = (np.concatenate(columns) for columns in zip(*found, strict=True))
            measured.append((terms, times))
    programs = sum(int(np.isfinite(seconds).sum()) for _, seconds in measured)
    if programs < LEAST_TO_FIT:
        raise _too_few(source, target, programs, LEAST_TO_FIT)
    weights = fitted_weights(measured)
    correlations = [rank_correlation(-(terms @ weights), -seconds) for terms, seconds in measured]
    model = StaticLinear(weights, target.family)
    return FittedWeights(model, programs, len(measured), float(np.nanmean(correlations)))


def train_network(
    source: Source, name: str, target: Target | None = None, *, seed: int | None = None
) -> NetworkModel:
    """The network called *name*, trained on all programs in *source* from machines like *target*.

    ``mtl_tlp``, which knows machines apart, is trained on those of all machines.  *seed*
    (default: ``ANSORPY_SEED``, or 0) is that of the first weights and of the order of the programs.

    Raises:
        UsageError: It is no network, or there are too few programs to learn from.
        MissingDependency: torch is not installed.
    """
    model = MODELS.one(name)
    if not isinstance(model, NetworkModel):
        raise UsageError(
            f"the cost model {name} has nothing to save", hint="train boosted, or a network"
        )
    model.fitting = replace(model.fitting, seed=seed_or_default(seed))
    target = calibrated(target or Target.host())
    _teach(model, _measured(source, target, of_all=model.heads > 1))
    if not model.is_trained:
        raise UsageError("there are too few programs to learn from")
    return model


def _too_few(source: Source, target: Target, programs: int, needed: int) -> UsageError:
    if isinstance(source, Database):
        name, families = str(source.path), [_family(row) for row in source.tasks()]
    else:
        name, families = "the dataset", [e.task.target.family for e in source.tasks.values()]
    others = sorted({*families} - {target.family, ""})
    return UsageError(
        f"{name} has {programs} programs for {target.family}, too few to learn "
        f"from (at least {needed} are needed)",
        hint=f"it has programs for {', '.join(others)}: name such a target with --target"
        if others
        else "tune or record something first",
    )


def _named(database: Database, tasks: Mapping[str, TaskSamples]) -> dict[str, TaskSamples]:
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
            _complete(database, row, target)
            model.recall(database.samples.of([row.key], version, width))
    return model


def _family(row: TaskRow) -> str:
    """The :attr:`~ansorpy.target.Target.family` of a recorded task; empty if its key lacks it."""
    key = _target_key(row)
    return family_of(key) if key else ""


def _target_key(row: TaskRow) -> str:
    """The key of a recorded task's target; empty if its own is of another form."""
    _, _, rest = row.key.partition("/")
    key = rest.split("/")[0]
    return key if key.count("|") == 4 and key.rpartition("|")[2].isdecimal() else ""


def _complete(database: Database, row: TaskRow, target: Target) -> None:
    """Store the training samples of those trials of a task that lack them."""
    known = database.samples.known(row.key, SAMPLE_VERSION)
    missing = [record for record in database.records(row.key) if record.id not in known]
    if not missing:
        return
    task = _task(database, row, target)
    for record, programs in _programs(database, missing):
        seconds = np.array([record.result.known_s])
        database.samples.put([record.id], samples_of(task, programs, seconds))


def _programs(database: Database, records: Iterable[Record]) -> Iterator[tuple[Record, Programs]]:
    """The program of each record that can be replayed and is for one size."""
    for record in records:
        try:
            state = record.state(database.definitions.get(record.definition))
        except ForeignFile:
            continue
        if not state.definition.dims:
            yield record, Programs.of(state)


def _task(database: Database, row: TaskRow, target: Target) -> Task:
    dag = database.definitions.get(row.definition)
    return Task(dag, target, row.threads, row.precision, row.reuse_distance_bytes, row.name)
