"""Summaries of a tuning database: trials of tasks, best times, failures with their reasons."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansorpy.evaluation.tables import Table
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.rows import Session, TaskRow
from ansorpy.measure.result import TrialKind
from ansorpy.profiler import Activity
from ansorpy.quantities import ms_of
from ansorpy.tasks.task_trials import TaskTrials

__all__ = [
    "TaskSummary",
    "activities_table",
    "failures_table",
    "sessions_table",
    "summaries",
    "tasks_table",
]


@dataclass(frozen=True)
class TaskSummary:
    """One task as recorded.

    ``weight`` is its number of calls in the given networks; None without networks.  ``target`` and
    ``reuse_distance_bytes`` are as in :class:`~ansorpy.measure.records.rows.TaskRow`.
    """

    key: str
    name: str
    weight: float | None
    threads: int
    precision: str
    target: str
    reuse_distance_bytes: int
    flops: float
    trials: int
    best_s: float | None
    failures: Mapping[TrialKind, tuple[int, str]]

    @property
    def gflops(self) -> float | None:
        """Arithmetic rate of the best program, in GFLOP/s."""
        return None if self.best_s is None else self.flops / self.best_s * 1e-9

    @property
    def failed(self) -> int:
        """Trials that gave no correct program in time, not counting those stopped as slow."""
        return sum(count for kind, (count, _) in self.failures.items() if kind != TrialKind.SLOW)

    def to_dict(self) -> dict[str, Any]:
        """The summary as JSON-serializable values."""
        failures = {
            k.value: {"count": n, "first_reason": text} for k, (n, text) in self.failures.items()
        }
        return {
            "key": self.key,
            "name": self.name,
            "weight": self.weight,
            "threads": self.threads,
            "precision": self.precision,
            "target": self.target,
            "reuse_distance_bytes": self.reuse_distance_bytes,
            "flops": self.flops,
            "trials": self.trials,
            "best_ms": ms_of(self.best_s),
            "gflops": self.gflops,
            "failures": failures,
        }


def summaries(database: Database, weights: Mapping[str, float] | None = None) -> list[TaskSummary]:
    """The tasks recorded in *database*: those of *weights* (calls by key), or all of them."""
    rows = database.tasks() if weights is None else map(database.task, weights)
    return [_summary(database, row, weights or {}) for row in rows if row is not None]


def _summary(database: Database, row: TaskRow, weights: Mapping[str, float]) -> TaskSummary:
    best = database.best(row.key)
    return TaskSummary(
        key=row.key,
        name=row.name,
        weight=weights.get(row.key),
        threads=row.threads,
        precision=row.precision,
        target=row.target,
        reuse_distance_bytes=row.reuse_distance_bytes,
        flops=row.flops,
        trials=database.trials(row.key),
        best_s=None if best is None else best.result.median_s,
        failures=database.failures(row.key),
    )


def tasks_table(
    tasks: Sequence[TaskSummary], title: str = "", *, run: Mapping[str, TaskTrials] | None = None
) -> Table:
    """One row per task in the order given, and the sums of columns that can be added up.

    Tasks of networks have calls, and shares of the time of all calls.  Tasks of a whole database
    have the conditions they were tuned for instead, and no total time, as they may belong to any
    networks.  With the trials of a *run* by task key, they are shown next to the planned
    ones, with the reason why they differ, instead of the trials of all runs.
    """
    weights = [t.weight for t in tasks if t.weight is not None]
    has_calls = len(weights) == len(tasks)
    columns = {"#": [*map(str, range(len(tasks))), ""], "task": [*(t.name for t in tasks), "all"]}
    if has_calls:
        columns["calls"] = [f"{calls:g}" for calls in (*weights, sum(weights))]
    else:
        columns |= _conditions(tasks)
    trials = [t.trials for t in tasks]
    if run is not None:
        planned, trials = [run[t.key].planned for t in tasks], [run[t.key].got for t in tasks]
        columns["planned"] = [*map(str, planned), str(sum(planned))]
    columns["trials"] = [*map(str, trials), str(sum(trials))]
    columns["failed"] = [*(str(t.failed) for t in tasks), str(sum(t.failed for t in tasks))]
    columns["best us"] = [*(_figure(t.best_s, 1e6) for t in tasks), ""]
    columns["GFLOP/s"] = [*(_figure(t.gflops) for t in tasks), ""]
    if has_calls:
        seconds = [w * (t.best_s or 0.0) for w, t in zip(weights, tasks, strict=True)]
        total = sum(seconds)
        columns["best us"][-1] = _figure(total, 1e6)
        columns["share"] = [*(f"{s / total:.0%}" if s else "-" for s in seconds), ""]
    if run is not None and any(run[t.key].why for t in tasks):
        columns["why not as planned"] = [*(run[t.key].why for t in tasks), ""]
    numeric = frozenset(columns) - {"task", "precision", "target", "why not as planned"}
    return Table(title, tuple(columns), tuple(zip(*columns.values(), strict=True)), numeric)


def _conditions(tasks: Sequence[TaskSummary]) -> dict[str, list[str]]:
    """Columns of the conditions the tasks were tuned for: threads, and others that differ."""
    found = {
        "threads": [str(t.threads) for t in tasks],
        "precision": [t.precision for t in tasks],
        "target": [" ".join(t.target.split()[:2]) for t in tasks],
        "reuse distance MiB": [f"{t.reuse_distance_bytes / (1 << 20):.4g}" for t in tasks],
    }
    return {
        name: [*cells, ""]
        for name, cells in found.items()
        if name == "threads" or len(set(cells)) > 1
    }


def _figure(value: float | None, unit: float = 1.0) -> str:
    return "-" if value is None else f"{value * unit:.1f}"


def failures_table(tasks: Sequence[TaskSummary]) -> Table:
    """Failures of all tasks by kind, with the first reason of each; SLOW is not a failure."""
    found: dict[TrialKind, list[tuple[int, str]]] = {}
    for task in tasks:
        for kind, (count, reason) in task.failures.items():
            if kind is TrialKind.SLOW:
                continue
            found.setdefault(kind, []).append((count, f"{task.name}: {reason}" if reason else ""))
    rows = []
    for kind, entries in sorted(found.items(), key=lambda item: item[0].value):
        reason = next((text for _, text in entries if text), "")
        count = sum(n for n, _ in entries)
        rows.append((kind.value, str(count), reason.partition("\n")[0]))
    heading = ("kind", "trials", "first reason")
    return Table("failed trials", heading, tuple(rows), frozenset({"trials"}))


def activities_table(seconds: Mapping[Activity, float]) -> Table:
    """Time of each activity of a run, longest first, and the total."""
    total = sum(seconds.values())
    entries = [*sorted(seconds.items(), key=lambda entry: -entry[1]), (None, total)]
    rows = tuple(
        ("all" if activity is None else activity.value, f"{s:.1f}", f"{s / total:.1%}")
        for activity, s in entries
        if total and s >= total / 1000
    )
    heading = ("time", "seconds", "share")
    return Table("", heading, rows, frozenset(heading) - {"time"})


def sessions_table(sessions: Sequence[Session]) -> Table:
    """One row per run: its start, duration and ending."""
    rows = tuple(
        (
            str(run.id),
            time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.started_at)),
            "-" if run.ended_at is None else f"{run.ended_at - run.started_at:.0f}",
            str(run.seed),
            _ending(run),
        )
        for run in sessions
    )
    heading = ("run", "started", "seconds", "seed", "ended")
    return Table("", heading, rows, frozenset({"run", "seconds", "seed"}))


def _ending(run: Session) -> str:
    if run.ended_at is None:
        return "running or killed"
    return run.reason or "complete"
