"""Datasets of measured programs, as one small file to publish.

A dataset is an ``.npz`` file of numeric arrays and a JSON header; nothing in it is ever unpickled
or run.  A definition is stored once, a sketch once as its steps, and a program as a row of small
integers and its seconds.  It says nothing about features, so any model can compute its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from ansorpy.arrays import Floats
from ansorpy.errors import AnsorpyError, ForeignFile
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.ir.text.serialize import dag_from_dict, dag_to_json
from ansorpy.measure.archive import DAMAGE, write_archive
from ansorpy.measure.task_conditions import TaskConditions, conditions_of
from ansorpy.schedule.space import Space, Table
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_from_json

__all__ = ["MeasuredSketch", "MeasuredTask", "ProgramDataset", "read_dataset", "write_dataset"]


@dataclass(frozen=True, eq=False)
class MeasuredSketch:
    """Measured programs of one placed sketch.

    Args:
        definition: The scheduled definition; ``name`` is ``direct`` or an algorithm's name.
        steps: The schedule with its sizes open, as JSON.
        table: The decisions of each program, ``table[program, column]``.
        seconds: Median seconds of each program; infinite if it failed.
    """

    definition: ComputeDAG
    name: str
    steps: str
    table: Table
    seconds: Floats

    def space(self) -> Space:
        """The space that the rows are from, without its constraints, which all rows satisfied.

        It is made anew by each call: datasets have thousands, of which few are needed at a time.

        Raises:
            ForeignFile: The steps do not lead to a schedule with these columns.
        """
        try:
            space = Space(State.replay(self.definition, steps_from_json(self.steps)))
        except AnsorpyError as error:
            raise ForeignFile(f"a sketch of the dataset cannot be replayed: {error}") from None
        if len(space.columns) != self.table.shape[1]:
            raise ForeignFile(
                f"a sketch of the dataset has {len(space.columns)} decisions "
                f"where {self.table.shape[1]} were recorded",
                hint="record it again with this version of ansorpy",
            )
        return space


@dataclass(frozen=True, eq=False)
class MeasuredTask:
    """The measured programs of one task; *source* names the network that it is from."""

    task: Task
    source: str
    sketches: tuple[MeasuredSketch, ...]

    def __len__(self) -> int:
        return sum(len(sketch.seconds) for sketch in self.sketches)

    @property
    def seconds(self) -> Floats:
        """Seconds of every program, in the order of the sketches."""
        return np.concatenate([np.zeros(0), *(sketch.seconds for sketch in self.sketches)])

    def only(self, mask: npt.NDArray[np.bool_]) -> MeasuredTask:
        """The programs where *mask*, in the order of :attr:`seconds`, is true."""
        ends = np.cumsum([len(sketch.seconds) for sketch in self.sketches])
        parts = zip(self.sketches, np.split(mask, ends[:-1]), strict=True)
        kept = (
            replace(sketch, table=sketch.table[part], seconds=sketch.seconds[part])
            for sketch, part in parts
            if part.any()
        )
        return replace(self, sketches=tuple(kept))


@dataclass
class ProgramDataset:
    """Measured programs by the keys of their tasks, in the order of recording."""

    tasks: dict[str, MeasuredTask] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(len(task) for task in self.tasks.values())

    def add(self, measured: MeasuredTask) -> None:
        """Add the programs of one task, in place of those that it has."""
        self.tasks[measured.task.key] = measured


class _Task(TaskConditions):
    """A task in the header; ``definition`` is the number of its definition."""

    definition: NonNegativeInt
    source: str


class _Sketch(BaseModel):
    """A sketch in the header; the numbers of its task and of the scheduled definition."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: NonNegativeInt
    definition: NonNegativeInt
    name: str
    steps: str
    columns: NonNegativeInt
    programs: NonNegativeInt


class _Header(BaseModel):
    """Everything but the numbers of the programs, which follow in the order of the sketches."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["ansorpy-dataset"] = "ansorpy-dataset"
    version: Literal[1] = 1
    definitions: tuple[dict[str, Any], ...]
    tasks: tuple[_Task, ...]
    sketches: tuple[_Sketch, ...]


def write_dataset(dataset: ProgramDataset, path: Path) -> None:
    """Write *dataset* to *path* atomically: a reader sees the old file or the new one."""
    numbers: dict[str, int] = {}
    known: dict[ComputeDAG, int] = {}

    def number(dag: ComputeDAG) -> int:
        if dag not in known:
            known[dag] = numbers.setdefault(dag_to_json(dag), len(numbers))
        return known[dag]

    tasks, sketches, measured = [], [], []
    for n, each in enumerate(dataset.tasks.values()):
        conditions = conditions_of(each.task)
        tasks.append(_Task(**conditions, definition=number(each.task.dag), source=each.source))
        for sketch in each.sketches:
            rows, columns = sketch.table.shape
            sketches.append(
                _Sketch(task=n, definition=number(sketch.definition), name=sketch.name,
                        steps=sketch.steps, columns=columns, programs=rows)
            )  # fmt: skip
            measured.append(sketch)
    header = _Header(
        definitions=tuple(json.loads(text) for text in numbers),
        tasks=tuple(tasks),
        sketches=tuple(sketches),
    )
    none = np.zeros(0)
    arrays: dict[str, npt.NDArray[Any]] = {
        # By columns: neighbouring numbers are alike, which compresses to half the size.
        "rows": np.concatenate([none, *(s.table.T.ravel() for s in measured)]).astype(np.int32),
        "seconds": np.concatenate([none, *(s.seconds for s in measured)]).astype(np.float32),
    }
    write_archive(path, header, arrays)


def read_dataset(path: Path) -> ProgramDataset:
    """Read and validate the dataset in *path*.

    Raises:
        ForeignFile: It is not a dataset, or is inconsistent.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            header = _Header.model_validate_json(archive["header"].tobytes())
            rows, seconds = archive["rows"], archive["seconds"]
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ForeignFile(f"{path} is not a dataset: {where}: {first['msg']}") from None
    except OSError as error:
        raise ForeignFile.unreadable(path, error) from None
    except DAMAGE:
        raise ForeignFile(
            f"{path} is not a dataset", hint="name files of ansorpy dataset record"
        ) from None
    problem = _problem(header, rows, seconds)
    if problem:
        raise ForeignFile(f"{path} is a damaged dataset: {problem}")
    return _dataset(header, rows.astype(np.int64), seconds.astype(np.float64))


def _dataset(header: _Header, rows: Table, seconds: Floats) -> ProgramDataset:
    dags = [dag_from_dict(definition) for definition in header.definitions]
    found: list[list[MeasuredSketch]] = [[] for _ in header.tasks]
    row = program = 0
    for sketch in header.sketches:
        size = sketch.columns * sketch.programs
        table = rows[row : row + size].reshape(sketch.columns, sketch.programs).T
        timed = seconds[program : program + sketch.programs]
        found[sketch.task].append(
            MeasuredSketch(dags[sketch.definition], sketch.name, sketch.steps, table, timed)
        )
        row, program = row + size, program + sketch.programs
    dataset = ProgramDataset()
    for task, sketches in zip(header.tasks, found, strict=True):
        made = task.task_of(dags[task.definition])
        dataset.add(MeasuredTask(made, task.source, tuple(sketches)))
    return dataset


def _problem(header: _Header, rows: npt.NDArray[Any], seconds: npt.NDArray[Any]) -> str:
    """Describe what is wrong with the numbers; empty when nothing is."""
    kinds: Mapping[str, tuple[npt.NDArray[Any], type]] = {
        "rows": (rows, np.int32), "seconds": (seconds, np.float32),
    }  # fmt: skip
    for name, (array, dtype) in kinds.items():
        if array.dtype != dtype or array.ndim != 1:
            return f"{name} has type {array.dtype} and {array.ndim} dimensions"
    size = sum(s.columns * s.programs for s in header.sketches)
    programs = sum(s.programs for s in header.sketches)
    if (len(rows), len(seconds)) != (size, programs):
        return f"{len(rows)} numbers of {len(seconds)} programs, where {size} of {programs} belong"
    if not _all_below((t.definition for t in header.tasks), header.definitions) or not _all_below(
        (s.definition for s in header.sketches), header.definitions
    ):
        return "a definition is missing"
    if not _all_below((s.task for s in header.sketches), header.tasks):
        return "a task is missing"
    return "" if (seconds > 0).all() else "a time that is not positive"


def _all_below(numbers: Iterable[int], things: Sequence[object]) -> bool:
    return all(number < len(things) for number in numbers)
