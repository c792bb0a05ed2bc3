"""Progress of a search: a live line on a terminal, occasional plain lines elsewhere, and tables."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from ansorpy.api.events import Planned, Tuned
from ansorpy.api.project import Project
from ansorpy.api.request import Request
from ansorpy.cli.kernels import network_reach
from ansorpy.evaluation.alternatives import alternatives_table
from ansorpy.evaluation.kernels import reach_table
from ansorpy.evaluation.tables import show
from ansorpy.evaluation.trial_plan import plan_table
from ansorpy.evaluation.tuning import failures_table, summaries, tasks_table
from ansorpy.measure.result import TrialKind
from ansorpy.search.events import Event, Phase, Progress

if TYPE_CHECKING:
    from rich.live import Live

__all__ = ["ProgressDisplay", "milliseconds", "plan_text", "progress_text"]

# Seconds between plain lines while nothing improves.
QUIET_S = 10.0


class ProgressDisplay:
    """A listener that shows plan, best latency, trials, failures by kind, time left and results.

    With *quiet*, neither the plan nor tables are shown.
    """

    def __init__(self, file: TextIO | None = None, *, quiet: bool = False) -> None:
        self._file = file or sys.stderr
        self._quiet = quiet
        self._failures: dict[str, Mapping[TrialKind, int]] = {}
        self._best: dict[str, float | None] = {}
        self._printed_at = 0.0
        self._live: Live | None = None

    def __enter__(self) -> ProgressDisplay:
        if self._file.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(file=self._file, highlight=False)
            self._live = Live(console=console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, event: Event) -> None:
        """Show one report."""
        if isinstance(event, Progress):
            self._show_progress(event)
        elif isinstance(event, Planned) and not self._quiet:
            self._show_plan(event)
        elif isinstance(event, Tuned) and not self._quiet:
            self._show_result(event)

    def _show_plan(self, event: Planned) -> None:
        for project in event.networks:
            print(plan_text(project, event.request), file=self._file)
            reaches = network_reach(project)
            if reaches:
                show(reach_table(reaches, len(project.network.workloads())), self._file)
        if event.plan is not None:
            show(plan_table(event.plan), self._file)

    def _show_result(self, event: Tuned) -> None:
        for found in event.regions:
            if found:
                show(alternatives_table(found), self._file)
        run = {outcome.task.key: outcome.allotment for outcome in event.tuning.outcomes}
        tasks = summaries(event.database, event.weights)
        show(tasks_table(tasks, run=run), self._file)
        failures = failures_table(tasks)
        if failures.rows:
            show(failures, self._file)
        print(f"ended: {event.tuning.ended.value}", file=self._file)

    def _show_progress(self, progress: Progress) -> None:
        improved = progress.task != "" and progress.best_s != self._best.get(progress.task)
        if progress.task:
            self._best[progress.task] = progress.best_s
            self._failures[progress.task] = progress.failures or {}
        line = progress_text(progress, self.failures)
        if self._live is not None:
            from rich.text import Text

            self._live.update(Text(line))
        elif improved or time.monotonic() - self._printed_at >= QUIET_S:
            self._printed_at = time.monotonic()
            print(line, file=self._file, flush=True)

    @property
    def failures(self) -> dict[TrialKind, int]:
        """Failed trials of all tasks by kind."""
        total: dict[TrialKind, int] = {}
        for counts in self._failures.values():
            for kind, count in counts.items():
                total[kind] = total.get(kind, 0) + count
        return total


def plan_text(project: Project, request: Request) -> str:
    """What the search is going to do: calls, tasks, threads and limits."""
    calls, tasks = len(project.network.calls), len(project.tasks)
    where = f"{request.target.name}, {request.threads} threads"
    others = len(project.all_tasks) - tasks
    more = f" (and {others} of other ways to partition it)" if others else ""
    text = f"{project.name}: {calls} kernels, {tasks} different tasks{more}, for {where}"
    budget = request.budget
    if budget is None:
        return f"{text}; nothing is measured"
    limits = []
    if budget.trials is not None:
        limits.append(f"{budget.trials} trials")
    if budget.trials_per_task is not None:
        limits.append(f"{budget.trials_per_task} trials per task")
    if budget.time_limit_s is not None:
        limits.append(f"{budget.time_limit_s:g} s")
    return f"{text}; tuning up to {', '.join(limits)}, records in {request.db}"


def progress_text(progress: Progress, failures: Mapping[TrialKind, int]) -> str:
    """One line with trials, best total, the task's best time, failures by kind, and time left."""
    limit = "" if progress.trial_limit is None else f"/{progress.trial_limit}"
    if progress.phase is Phase.PICKED:
        return f"program {progress.total_trials}{limit} chosen: {progress.task}"
    parts = [f"trials {progress.total_trials}{limit}"]
    if progress.total_s is not None:
        parts.append(f"best {milliseconds(progress.total_s)}")
    if progress.task:
        best = "-" if progress.best_s is None else milliseconds(progress.best_s)
        parts.append(f"{progress.task}: {best}")
    if failures:
        counts = sorted(failures.items(), key=lambda item: -item[1])
        parts.append("failed " + ", ".join(f"{count} {kind.value}" for kind, count in counts))
    if progress.left_s is not None:
        left = max(0, round(progress.left_s))
        parts.append(f"{left // 60}:{left % 60:02d} left")
    return "  ".join(parts)


def milliseconds(seconds: float) -> str:
    """Format a latency in milliseconds, or in microseconds if it is below one millisecond."""
    return f"{seconds * 1e3:.3f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"
