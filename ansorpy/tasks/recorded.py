"""A tuning run's request as the database keeps it: all its course depends on except results.

It is validated when read back, like everything in the file; parts and rules are stored by name,
and nothing is loaded because the file says so.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from ansorpy.ir.task import Precision, Task
from ansorpy.measure.database import Database
from ansorpy.rules.presets import preset_for
from ansorpy.rules.structure import StructureSampler
from ansorpy.target import Target
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.objective import Goal

__all__ = [
    "RunRequest",
    "TaskRequest",
    "described",
    "ranges",
    "request_of",
    "restored",
    "space_name",
    "unranged",
]


_NAMES = ("default", "ansor")


P = TypeVar("P")


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TaskRequest(_Body):
    """One task of a run: its definition (a database id), its conditions and its weight."""

    definition: str
    target: Target
    threads: int = Field(ge=1)
    precision: Precision
    between_bytes: int = Field(ge=0)
    name: str
    space: str
    weight: float

    def task(self, database: Database) -> Task:
        """The task; its definition is read from *database*."""
        dag = database.definition(self.definition)
        return Task(dag, self.target, self.threads, self.precision, self.between_bytes, self.name)


class RunRequest(_Body):
    """The request of a run.

    ``known`` lists, by table, the rows that existed when it began (finished trials and others), as
    :func:`ranges` writes them, and ``event`` is the last event before it; ``parts`` describes the
    replaceable parts; ``goals`` are the networks that the objective refers to.
    """

    tasks: tuple[TaskRequest, ...]
    budget: Budget
    parts: dict[str, str]
    known: dict[str, str]
    event: int = Field(ge=0)
    goals: tuple[Goal, ...] = ()


def request_of(
    tasks: Iterable[tuple[Task, str, float]],
    budget: Budget,
    options: object,
    database: Database,
    past: Database,
    goals: tuple[Goal, ...] = (),
) -> RunRequest:
    """The request of a run over *tasks*, each with the name of its space and its weight.

    *past* is the snapshot of *database* that the run started from.
    """
    return RunRequest(
        tasks=tuple(
            TaskRequest(
                definition=database.definitions.put(task.dag),
                target=task.target,
                threads=task.threads,
                precision=task.precision,
                between_bytes=task.between_bytes,
                name=task.name,
                space=space,
                weight=weight,
            )
            for task, space, weight in tasks
        ),
        budget=budget,
        parts=described(options),
        known={table: ranges(ids) for table, ids in past.known().items()},
        event=past.last_event,
        goals=goals,
    )


def described(part: object, name: str = "") -> dict[str, str]:
    """Describe *part* as text by path of each value: classes by name, dataclasses by field."""
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        found = {name: _place(type(part))} if name else {}
        for field in dataclasses.fields(part):
            inner = f"{name}.{field.name}" if name else field.name
            if not field.name.startswith("_"):
                found |= described(getattr(part, field.name), inner)
        return found
    if isinstance(part, partial):
        given = [_given(v) for v in part.args]
        given += [f"{k}={_given(v)}" for k, v in part.keywords.items()]
        text = ", ".join([_place(part.func), *given])
        return {name: text}
    if part is None or isinstance(part, str | int | float | tuple):
        return {name: repr(part)}
    return {name: _place(part)}


def _given(value: object) -> str:
    """An argument as text: its repr for plain values and dataclasses, otherwise its class."""
    plain = value is None or isinstance(value, str | int | float | tuple)
    figures = dataclasses.is_dataclass(value) and not isinstance(value, type)
    return repr(value) if plain or figures else _place(value)


def space_name(source: object) -> str:
    """The name of the rules that *source* uses; empty for rules of the caller's own."""
    if not isinstance(source, StructureSampler):
        return ""
    preset = source.preset
    known = preset.name in _NAMES and preset == preset_for(source.target, preset.name)
    return preset.name if known else ""


def _place(part: object) -> str:
    """Where *part*, a class or function, is defined; for other objects, their class."""
    named = part if hasattr(part, "__qualname__") else type(part)
    return f"{named.__module__}:{getattr(named, '__qualname__', '')}"


def restored(options: P, parts: Mapping[str, str], name: str = "") -> P:
    """*options* with the numbers, strings and booleans that *parts* describes.

    Other values stay as they are: a part is never constructed from a file's contents.
    """
    if not dataclasses.is_dataclass(options) or isinstance(options, type):
        return options
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(options):
        inner = f"{name}.{field.name}" if name else field.name
        value = getattr(options, field.name)
        if field.name.startswith("_") or not field.init:
            continue
        if value is None or isinstance(value, str | int | float):
            changes[field.name] = _literal(parts.get(inner), value)
        else:
            changes[field.name] = restored(value, parts, inner)
    return dataclasses.replace(options, **changes)


def _literal(text: str | None, default: object) -> object:
    try:
        value = default if text is None else ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return default
    return value if value is None or isinstance(value, str | int | float) else default


def ranges(numbers: Sequence[int]) -> str:
    """Write ascending *numbers* as text: ``"1-64,70"``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{a}-{b}" if a < b else f"{a}" for a, b in parts)


def unranged(text: str) -> list[tuple[int, int]]:
    """First and last number of each range in *text*; raises ValueError for anything else."""
    found = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.append((int(first), int(last or first)))
    return found
