"""Select a task on the command line by its number, its name, or a part of its name."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.errors import UsageError
from ansorpy.ir.task import Task

__all__ = ["selected"]


def selected(tasks: Sequence[Task], wanted: str | None) -> list[Task]:
    """All *tasks*, or the one that *wanted* identifies.

    Raises:
        UsageError: No task or several tasks match.
    """
    if wanted is None:
        return list(tasks)
    if wanted.isdecimal() and int(wanted) < len(tasks):
        return [tasks[int(wanted)]]
    found = [t for t in tasks if t.name == wanted] or [t for t in tasks if wanted in t.name]
    if len(found) == 1:
        return found
    names = ", ".join(f"{number} {task.name}" for number, task in enumerate(tasks))
    problem = f"{len(found)} tasks match {wanted!r}" if found else f"no task {wanted!r}"
    raise UsageError(problem, hint=f"give a number or a name from: {names}")
