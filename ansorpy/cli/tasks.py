"""Naming a task of a network on the command line: its number, its name, or a part of it."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.errors import UsageError
from ansorpy.ir.task import Task

__all__ = ["selected"]


def selected(tasks: Sequence[Task], wanted: str | None) -> list[Task]:
    """All *tasks*, or the one that *wanted* names.

    Raises:
        UsageError: None or several answer to it.
    """
    if wanted is None:
        return list(tasks)
    if wanted.isdecimal() and int(wanted) < len(tasks):
        return [tasks[int(wanted)]]
    found = [t for t in tasks if t.name == wanted] or [t for t in tasks if wanted in t.name]
    if len(found) == 1:
        return found
    names = ", ".join(f"{number} {task.name}" for number, task in enumerate(tasks))
    problem = f"{len(found)} tasks answer to {wanted!r}" if found else f"no task {wanted!r}"
    raise UsageError(problem, hint=f"give a number or a name of: {names}")
