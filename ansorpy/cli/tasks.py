"""Select a task or kernel on the command line by its number, its name, or a part of its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from ansorpy.errors import UsageError

__all__ = ["selected"]


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_T = TypeVar("_T", bound=_Named)


def selected(tasks: Sequence[_T], wanted: str | None, what: str = "task") -> list[_T]:
    """All *tasks*, or the one that *wanted* identifies.

    Raises:
        UsageError: No task or several tasks match; they are called *what*.
    """
    if wanted is None:
        return list(tasks)
    if wanted.isdecimal() and int(wanted) < len(tasks):
        return [tasks[int(wanted)]]
    found = [t for t in tasks if t.name == wanted] or [t for t in tasks if wanted in t.name]
    if len(found) == 1:
        return found
    meant = {task.name for task in found or tasks}
    names = ", ".join(f"{n} {task.name}" for n, task in enumerate(tasks) if task.name in meant)
    if found:
        raise UsageError(f"{len(found)} {what}s match {wanted!r}", hint=f"give a number: {names}")
    raise UsageError(f"no {what} {wanted!r}", hint=f"give a number or a name from: {names}")
