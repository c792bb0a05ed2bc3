"""The base class of steps, and how open choices inside a step are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from ansorpy.errors import ScheduleError
from ansorpy.schedule.decisions import Decision, OneOf, Product

if TYPE_CHECKING:
    from ansorpy.schedule.stage import Stage
    from ansorpy.schedule.state import State

__all__ = [
    "Count",
    "Step",
    "at_least",
    "chosen",
    "compute_stage",
    "named",
    "numbered",
    "opened",
    "printed",
    "some",
]

E = TypeVar("E", bound=Enum)

Count: TypeAlias = int | OneOf
"""A number, or an open choice of one."""


@dataclass(frozen=True)
class Step:
    """One recorded primitive; it names stages and loops, so it reads like the call it is."""

    stage: str

    def apply(self, state: State) -> State:
        """The state after this step; raises :class:`~ansorpy.errors.ScheduleError`."""
        raise NotImplementedError(type(self).__name__)

    def call(self) -> str:
        """This step as the Python statement that repeats it on a variable ``state``."""
        raise NotImplementedError(type(self).__name__)

    def resolve(self, values: Mapping[str, int]) -> Step:
        """This step with its open decisions replaced by *values* (column name -> number)."""
        return self

    def numbers(self) -> dict[str, int]:
        """The numbers of this step, by the columns that would hold them if they were open.

        Law: ``open.resolve(open.resolve(values).numbers()) == open.resolve(values)``.
        """
        return {}

    def skeleton(self) -> Step:
        """This step without its numbers and what depends on them; equal for all its settings."""
        return self


def compute_stage(state: State, name: str, step: Step) -> Stage:
    """The stage *name*, of which *step* asks what only a stage with loops can do.

    Raises:
        ScheduleError: There is no such stage, or it is an input.
    """
    stage = state.stage(name)
    if stage.is_placeholder:
        raise ScheduleError(
            f'"{name}" is a placeholder: it is given, so it has no loops and no place',
            step=step.call(), stage=name, program=state.text(),
            hint="cache_read makes a stage that copies it",
        )  # fmt: skip
    return stage


def at_least(least: int, number: Count, step: Step, state: State) -> None:
    """Refuse a *number* of *step* that is below *least*."""
    if isinstance(number, int) and number < least:
        raise ScheduleError(
            f"{number} is impossible here; it is at least {least}",
            step=step.call(), stage=step.stage, program=state.text(step.stage),
        )  # fmt: skip


def some(what: str, given: Sequence[object], step: Step, state: State) -> None:
    """Refuse a *step* that is *given* none of what it needs."""
    if not given:
        raise ScheduleError(
            f"no {what} is named", step=step.call(), stage=step.stage,
            program=state.text(step.stage), hint=f"name one {what} or more",
        )  # fmt: skip


def named(what: str, value: str, step: Step, allowed: Iterable[E]) -> E:
    """The one of *allowed* whose value is *value*.

    Raises:
        ScheduleError: There is none; *what* names in the message what was asked for.
    """
    known = {member.value: member for member in allowed}
    if value not in known:
        raise ScheduleError(
            f'"{value}" is not a {what}', step=step.call(), stage=step.stage,
            hint=f"it is one of {', '.join(map(str, known))}",
        )  # fmt: skip
    return known[value]


def opened(name: str, count: Count) -> tuple[Product, tuple[Decision, ...]]:
    """*count* as a product, with the decision it opens (none for a number)."""
    if isinstance(count, OneOf):
        return (name,), (Decision(name, (name,), count),)
    return (count,), ()


def chosen(name: str, count: Count, values: Mapping[str, int]) -> Count:
    """*count* with the value of column *name* filled in where it is open."""
    return values.get(name, count) if isinstance(count, OneOf) else count


def numbered(name: str, count: Count) -> dict[str, int]:
    """*count* by the name of its column; nothing while it is open."""
    return {name: count} if isinstance(count, int) else {}


def printed(count: Count) -> str:
    """*count* as Python source."""
    return f"OneOf({count.values})" if isinstance(count, OneOf) else str(count)
