"""Schemas of database rows: everything read from a file is validated."""

from __future__ import annotations

import hashlib
import math
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, Json, ValidationError, model_validator

from ansorpy.errors import AnsorpyError, ForeignFile
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Precision
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.base import Step
from ansorpy.schedule.steps.records import steps_from_json, steps_to_json

__all__ = [
    "NOW", "EventRow", "FailureCount", "Position", "Record", "Scheduled", "Session", "TaskRow",
    "Trial", "Unmade", "program_name", "read_row", "trial_digest",
]  # fmt: skip


_NO_ROW = 1 << 62
"""Larger than the number of any row."""

_Moment = Annotated[float, Field(ge=0, lt=2.5e11)]
"""Seconds since 1970, up to the last year that a calendar can show."""


class Scheduled(Protocol):
    """A scheduled program: a definition, and the steps that schedule it."""

    @property
    def definition(self) -> ComputeDAG: ...

    @property
    def history(self) -> Sequence[Step]: ...


@dataclass(frozen=True)
class Unmade:
    """A program that cannot be built up because one of its steps is impossible."""

    definition: ComputeDAG
    history: tuple[Step, ...]


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TaskRow(_Row):
    """One recorded task: ``definition`` is the id of its DAG in the definitions table.

    Tasks with the same ``class_key`` differ in shapes and threads only (:attr:`.Task.class_key`).
    """

    key: str
    name: str
    definition: str
    target: str
    threads: int = Field(ge=1)
    precision: Precision
    reuse_distance_bytes: int = Field(ge=0)
    flops: float = Field(ge=0)
    class_key: str


class Session(_Row):
    """One run of a tuner; ``ended_at`` is None while it runs, or if it was killed.

    ``reason``: why its last search stopped, or the error that ended the run before that was known;
    empty: the run searched nothing.
    """

    id: int
    process: str
    seed: int
    versions: Json[dict[str, str]]
    started_at: _Moment
    ended_at: _Moment | None
    reason: str


class EventRow(_Row):
    """One action or decision of the driver, for replay."""

    id: int
    session: int
    kind: str
    body: Json[dict[str, object]]


def trial_digest(program: Scheduled) -> str:
    """Digest of the steps, which identifies a schedule among those of one definition."""
    return hashlib.sha256(steps_to_json(program.history).encode()).hexdigest()


def program_name(definition: str, digest: str) -> str:
    """Name of a program: prefixes of its definition's identifier and of its digest."""
    return f"{definition[:8]}-{digest[:16]}"


class Trial(_Row):
    """A program of a task whose measurement was started: a schedule of one definition.

    ``definition`` identifies the DAG that the steps apply to: the task's own, or an equivalent one.
    ``session`` is the last that started it; ``attempts`` counts the starts, which count for a user
    with a ``signature`` of them (:func:`ansorpy.measure.records.results.start_signature`).
    """

    id: int
    task_key: str
    definition: str
    digest: str
    steps: str
    session: int
    attempts: int = Field(ge=1)
    started_at: _Moment
    signature: str = ""

    @property
    def program(self) -> str:
        """A short name of the program."""
        return program_name(self.definition, self.digest)

    def schedule(self) -> list[Step]:
        """The steps of the schedule.

        Raises:
            ForeignFile: They are not those that were measured, or another version wrote them.
        """
        if hashlib.sha256(self.steps.encode()).hexdigest() != self.digest:
            raise ForeignFile(f"the steps of trial {self.id} are not those that were recorded")
        return steps_from_json(self.steps)

    def state(self, dag: ComputeDAG) -> State:
        """The schedule, replayed on *dag*: the definition it was recorded with (same names).

        Raises:
            ForeignFile: The steps do not apply to *dag*.
        """
        steps = self.schedule()
        try:
            return State.replay(dag, steps)
        except AnsorpyError as error:
            raise ForeignFile(
                f"the schedule of trial {self.id} does not apply to this definition: {error}",
                hint="replay it on Database.definitions.get(record.definition)",
            ) from None


class Record(Trial):
    """A trial with a result: its last one, unless an earlier one was requested.

    ``number`` counts all results in the order they were recorded; ``session`` measured this one.
    ``scale``: factor that makes the times of a program that was timed again next to other finalists
    comparable with those of other trials; None: it was measured on its own.
    """

    number: int
    kind: TrialKind
    reason: str
    seconds: Json[tuple[float, ...]]
    scale: float | None = Field(gt=0, allow_inf_nan=False)
    median_s: float | None = Field(gt=0, allow_inf_nan=False)
    spread: float = Field(ge=0)
    build_s: float = Field(ge=0)
    run_s: float = Field(ge=0)
    max_error: float
    object_digest: str
    load: float
    finished_at: _Moment

    @model_validator(mode="after")
    def _times_of_a_correct_program(self) -> Self:
        times = (*self.seconds, self.median_s or 0.0)
        if self.ok and not (self.seconds and all(0 < t < math.inf for t in times)):
            raise ValueError("a correct program has times")
        return self

    @property
    def ok(self) -> bool:
        return self.kind is TrialKind.OK

    @property
    def measured(self) -> MeasureResult:
        """The result as it was measured."""
        return MeasureResult(
            kind=self.kind,
            seconds=self.seconds,
            reason=self.reason,
            build_s=self.build_s,
            run_s=self.run_s,
            max_error=math.inf if self.max_error < 0 else self.max_error,
            object_digest=self.object_digest,
        )

    @property
    def result(self) -> MeasureResult:
        """The result, with times that are comparable with those of other trials."""
        return self.measured if self.scale is None else self.measured.scaled(self.scale)


class FailureCount(_Row):
    """How many trials of a task failed in one way; *reason* is that of result number *first*."""

    kind: TrialKind
    n: int
    reason: str
    first: int


class Position(_Row):
    """A point in a database's history: the last row numbers of the append-only tables."""

    results: int = Field(ge=0, le=_NO_ROW)
    samples: int = Field(ge=0, le=_NO_ROW)


NOW = Position(results=_NO_ROW, samples=_NO_ROW)
"""A position after all rows: the database as it is now."""


R = TypeVar("R", bound=BaseModel)


def read_row(model: type[R], row: sqlite3.Row, path: Path) -> R:
    """Convert *row* to *model*; raises :class:`ForeignFile` naming the column that is wrong."""
    try:
        return model.model_validate(dict(row))
    except ValidationError as error:
        first = error.errors()[0]
        column = ".".join(str(part) for part in first["loc"])
        raise ForeignFile(
            f"{path} contains a {model.__name__} that this version of ansorpy did not write: "
            f"column {column}: {first['msg']}",
            hint="the file is damaged; name another with --db (db= in Python)",
        ) from None
