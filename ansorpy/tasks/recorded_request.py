"""A tuning run's recorded request: everything that determines the run apart from its results.

It is validated when read back, like everything in the file.  A part is stored by the place of its
definition, and nothing is ever loaded because a file names it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeGuard, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from ansorpy.errors import ForeignFile, UsageError
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.known_trials import KnownTrials
from ansorpy.measure.records.rows import EventRow, Position
from ansorpy.measure.task_conditions import TaskConditions, conditions_of
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import preset_for
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.objective import TunedNetwork

__all__ = [
    "RecordedPart", "RunRequest", "Setting", "TaskRequest", "adjusted", "described", "differences",
    "place_of", "preset_name", "read_request", "request_of",
]  # fmt: skip

_PRESETS = ("default", "ansor")

T = TypeVar("T")


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RecordedPart(_Body):
    """A replaceable part: the place of its class or function, and its arguments by name."""

    place: str
    settings: dict[str, Setting] = {}

    def at(self, path: str) -> Setting:
        """The setting at *path*, where dots lead into inner parts; None if there is none."""
        name, _, inner = path.partition(".")
        found = self.settings.get(name)
        if not inner:
            return found
        return found.at(inner) if isinstance(found, RecordedPart) else None


Setting: TypeAlias = RecordedPart | bool | int | float | str | None
"""An argument of a part: a plain value or another part."""

RecordedPart.model_rebuild()


class TaskRequest(TaskConditions):
    """One task of a run: its definition (a database id), its conditions and its weight.

    ``preset`` names its rules; empty: the caller's own rules.
    """

    definition: str
    preset: str
    weight: float

    def task(self, database: Database) -> Task:
        """The task; its definition is read from *database*."""
        return self.task_of(database.definitions.get(self.definition))


class RunRequest(_Body):
    """The request of a run.

    ``options`` describes the options of tuning except ``networks``, the networks that the objective
    refers to; ``began`` is the position of the database when the run began.
    """

    tasks: tuple[TaskRequest, ...]
    budget: Budget
    options: RecordedPart
    networks: tuple[TunedNetwork, ...]
    began: Position

    @model_validator(mode="after")
    def _networks_call_these_tasks(self) -> RunRequest:
        numbers = range(len(self.tasks))
        for network in self.networks:
            called = {task for region in network.regions for task in region.most_calls}
            if len(network.calls) != len(numbers) or not called <= {*numbers}:
                name = network.name
                raise ValueError(f"network {name!r} calls tasks that are not in the request")
        return self


def request_of(
    tasks: Iterable[tuple[Task, str, float]],
    budget: Budget,
    options: object,
    networks: tuple[TunedNetwork, ...],
    known: KnownTrials,
) -> RunRequest:
    """The request of a run over *tasks*, each with the name of its preset and its weight.

    *known* are the trials that the run starts from.
    """
    described_options = described(options)
    assert isinstance(described_options, RecordedPart)
    return RunRequest(
        tasks=tuple(
            TaskRequest(
                definition=known.database.definitions.identify(task.dag),
                preset=preset,
                weight=weight,
                **conditions_of(task),
            )
            for task, preset, weight in tasks
        ),
        budget=budget,
        options=described_options,
        networks=networks,
        began=known.began,
    )


def read_request(event: EventRow, database: Database) -> RunRequest:
    """The request that *event*, the first of a run, holds.

    Raises:
        ForeignFile: Another version recorded it, or it is damaged.
    """
    try:
        return RunRequest.model_validate(event.body)
    except (UsageError, ValidationError) as error:
        why = error.message if isinstance(error, UsageError) else error.errors()[0]["msg"]
        raise ForeignFile(
            f"{database.path}: run {event.session} was recorded by an incompatible version: {why}"
        ) from None


def described(value: object) -> Setting:
    """*value* as JSON data: a plain value as it is, a part by its place and arguments."""
    if _is_plain(value):
        return value
    if isinstance(value, tuple | list):
        given = {str(n): part for n, part in enumerate(value)}
        return RecordedPart(place=place_of(value), settings=_described_all(given))
    if isinstance(value, partial):
        given = {**{str(n): v for n, v in enumerate(value.args)}, **value.keywords}
        return RecordedPart(place=place_of(value.func), settings=_described_all(given))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        given = {field.name: getattr(value, field.name) for field in _fields(value)}
        return RecordedPart(place=place_of(value), settings=_described_all(given))
    return RecordedPart(place=place_of(value))


def adjusted(part: T, settings: Setting) -> T:
    """*part* with the plain values in *settings*, also in the dataclasses inside it.

    Other values stay as they are: a part is never constructed from the contents of a file.
    """
    if not isinstance(settings, RecordedPart) or not dataclasses.is_dataclass(part):
        return part
    if isinstance(part, type):
        return part
    changes: dict[str, Any] = {}
    for field in _fields(part):
        if field.init and field.name in settings.settings:
            value, setting = getattr(part, field.name), settings.settings[field.name]
            fits = _is_plain(value) and _is_plain(setting)
            changes[field.name] = setting if fits else adjusted(value, setting)
    return dataclasses.replace(part, **changes)


def differences(one: Setting, other: Setting, name: str = "") -> list[str]:
    """The dotted names of the settings that differ."""
    if not (
        isinstance(one, RecordedPart)
        and isinstance(other, RecordedPart)
        and one.place == other.place
    ):
        return [] if one == other else [name]
    found = []
    for key in {**one.settings, **other.settings}:
        inner = f"{name}.{key}" if name else key
        if key not in one.settings or key not in other.settings:
            found.append(inner)
        else:
            found += differences(one.settings[key], other.settings[key], inner)
    return found


def place_of(part: object) -> str:
    """The module and name of *part*, a class or function; for other objects, of their class."""
    named = part if hasattr(part, "__qualname__") else type(part)
    return f"{named.__module__}:{getattr(named, '__qualname__', '')}"


def preset_name(source: object) -> str:
    """The name of the rules that *source* uses; empty for the caller's own rules."""
    if not isinstance(source, SketchSampler):
        return ""
    preset = source.preset
    known = preset.name in _PRESETS and preset == preset_for(source.target, preset.name)
    return preset.name if known else ""


def _described_all(values: dict[str, object]) -> dict[str, Setting]:
    return {name: described(value) for name, value in values.items()}


def _fields(part: Any) -> Sequence[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(part) if not field.name.startswith("_")]


def _is_plain(value: object) -> TypeGuard[bool | int | float | str | None]:
    return value is None or isinstance(value, bool | int | float | str)
