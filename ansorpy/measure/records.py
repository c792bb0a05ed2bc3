"""What a database row must look like; nothing read from a file is believed unchecked."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, Json, ValidationError

from ansorpy.errors import AnsorpyError, ForeignFile
from ansorpy.ir.dag import ComputeDAG
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.schedule.records import steps_from_json
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.base import Step

__all__ = ["Event", "Unmade", "Scheduled", "Record", "Session", "TaskRow", "read_row"]


class Scheduled(Protocol):
    """What a trial is of: a definition, and the steps that schedule it."""

    @property
    def base(self) -> ComputeDAG: ...

    @property
    def history(self) -> Sequence[Step]: ...


@dataclass(frozen=True)
class Unmade:
    """A program that cannot be made: one of the steps is impossible."""

    base: ComputeDAG
    history: tuple[Step, ...]


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TaskRow(_Row):
    """One task as recorded: ``definition`` names its DAG in the definitions table.

    Tasks of one ``class_key`` differ in shapes and threads only (:attr:`.Task.class_key`).
    """

    key: str
    name: str
    definition: str
    target: str
    threads: int = Field(ge=1)
    precision: str
    between_bytes: int = Field(ge=0)
    flops: float = Field(ge=0)
    class_key: str


class Session(_Row):
    """One run of a tuner; ``ended_at`` is None while it runs, or when it was killed.

    ``reason``: why its last search measured no more, or what failed before it could tell; empty: it
    searched nothing.
    """

    id: int
    process: str
    seed: int
    versions: Json[dict[str, str]]
    started_at: float
    ended_at: float | None
    reason: str


class Event(_Row):
    """One thing the driver did or decided, for replay."""

    id: int
    session: int
    kind: str
    body: Json[dict[str, object]]


class Record(_Row):
    """One trial: a schedule of one definition, and what measuring it gave.

    ``status`` is ``started`` from before it runs until it is done; ``attempts`` counts starts.
    ``definition`` is the DAG the steps apply to: the task's own, or an equivalent one.
    """

    id: int
    task_key: str
    definition: str
    digest: str
    steps: str
    session: int
    status: Literal["started", "done"]
    attempts: int = Field(ge=1)
    kind: Literal[""] | TrialKind
    reason: str
    seconds: Json[tuple[float, ...]]
    median_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    spread: float = Field(ge=0)
    build_s: float = Field(ge=0)
    run_s: float = Field(ge=0)
    max_error: float
    object_digest: str
    load: float
    started_at: float
    finished_at: float | None

    @property
    def is_done(self) -> bool:
        return self.status == "done"

    @property
    def ok(self) -> bool:
        return self.is_done and self.kind is TrialKind.OK

    @property
    def result(self) -> MeasureResult:
        """The recorded outcome; raises ValueError for a trial that is not done."""
        if not isinstance(self.kind, TrialKind):
            raise ValueError(f"trial {self.id} is not done")
        return MeasureResult(
            kind=self.kind,
            seconds=self.seconds,
            reason=self.reason,
            build_s=self.build_s,
            run_s=self.run_s,
            max_error=math.inf if self.max_error < 0 else self.max_error,
            object_digest=self.object_digest,
        )

    def state(self, dag: ComputeDAG) -> State:
        """The schedule, replayed on *dag*: the definition it was recorded with (same names).

        Raises:
            ForeignFile: The steps do not apply to *dag*.
        """
        steps = steps_from_json(self.steps)
        try:
            return State.replay(dag, steps)
        except AnsorpyError as error:
            raise ForeignFile(
                f"the schedule of trial {self.id} does not apply to this definition: {error}",
                hint="replay it on Database.definition(record.definition)",
            ) from None


R = TypeVar("R", bound=BaseModel)


def read_row(model: type[R], row: sqlite3.Row, path: Path) -> R:
    """*row* as *model*; raises :class:`ForeignFile` naming the column that is wrong."""
    try:
        return model.model_validate(dict(row))
    except ValidationError as error:
        first = error.errors()[0]
        column = ".".join(str(part) for part in first["loc"])
        raise ForeignFile(
            f"{path} holds a {model.__name__} this ansorpy did not write: "
            f"column {column}: {first['msg']}",
            hint="the file is damaged; name another with --db",
        ) from None
