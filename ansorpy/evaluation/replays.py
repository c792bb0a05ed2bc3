"""Tables of the results of replaying a run."""

from __future__ import annotations

from collections.abc import Mapping

from ansorpy.evaluation.tables import Table
from ansorpy.tasks.replay import Rerun, TaskRerun

__all__ = ["changed_versions", "rerun_table"]

_DIGITS = 12


def changed_versions(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """One line for each version that differs from the recorded one."""
    return [
        f"note: the run used {name} {version}, this is {now.get(name, 'a different program')}"
        for name, version in sorted(then.items())
        if now.get(name) != version
    ]


def rerun_table(again: Rerun) -> Table:
    """One row per task: its best program, and whether its code is byte-for-byte the same."""
    history = "another history" if again.divergence else "same history"
    title = (
        f"run {again.run} ({again.ended}): {history}, {again.trials} trials, "
        f"{again.followed} of {again.events} events"
    )
    heading = ("task", "best us", "program", "timed code", "rebuilt", "bytes")
    return Table(title, heading, tuple(map(_row, again.tasks)), frozenset({"best us"}))


def _row(task: TaskRerun) -> tuple[str, ...]:
    return (
        task.name,
        f"{task.median_s * 1e6:.1f}",
        task.program,
        task.timed[:_DIGITS] or "-",
        task.rebuilt[:_DIGITS] or "-",
        "same" if task.is_same else "other",
    )
