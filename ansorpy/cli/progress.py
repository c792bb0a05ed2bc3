"""What the terminal says about a search: the plan, its progress, and what was found."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TextIO

from ansorpy.api.display.base import Display
from ansorpy.api.display.board import Board
from ansorpy.api.display.json_lines import JsonLines
from ansorpy.api.display.shown import display_for
from ansorpy.api.display.text import reached
from ansorpy.api.events import Planned, Tuned
from ansorpy.api.project import Project
from ansorpy.api.request import Request
from ansorpy.cli.kernels import network_reach
from ansorpy.errors import UsageError
from ansorpy.evaluation.alternatives import alternatives_table
from ansorpy.evaluation.kernels import reach_table
from ansorpy.evaluation.tables import say, show
from ansorpy.evaluation.trial_plan import plan_table
from ansorpy.evaluation.tuning import failures_table, summaries, tasks_table
from ansorpy.quantities import counted, duration_text
from ansorpy.search.events import Event

__all__ = ["SearchReport", "Talk", "limits_text", "project_text"]


@dataclass(frozen=True)
class Talk:
    """How much a verb says while it works.

    Args:
        quiet: Only warnings and errors.
        verbose: Also the plan of each task, ways to cut networks, and where the time went.
        json: Events on stdout, one JSON object a line, instead of text.

    Raises:
        UsageError: It is both quiet and verbose.
    """

    quiet: bool = False
    verbose: bool = False
    json: bool = False

    def __post_init__(self) -> None:
        if self.quiet and self.verbose:
            raise UsageError("--quiet and --verbose exclude each other", hint="leave one out")

    @property
    def shows_text(self) -> bool:
        """Whether there is text for people."""
        return not (self.quiet or self.json)


class SearchReport:
    """A listener that shows the plan, the progress and the results of a search, as *talk* says.

    ``board`` has what the search has reported so far.
    """

    def __init__(self, talk: Talk, file: TextIO | None = None) -> None:
        self.board = Board()
        self._talk = talk
        self._file = file or sys.stderr
        self._display = self._opened()

    def _opened(self) -> Display | None:
        if self._talk.json:
            return JsonLines(sys.stdout)
        return None if self._talk.quiet else display_for(self.board, self._file)

    def __enter__(self) -> SearchReport:
        if self._display is not None:
            self._display.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._display is not None:
            self._display.__exit__(*exception)

    def __call__(self, event: Event) -> None:
        """Show one report."""
        self.board(event)
        if self._display is None:
            return
        self._display(event)
        if self._talk.shows_text and isinstance(event, Planned | Tuned):
            with self._display.paused():
                if isinstance(event, Planned):
                    self._show_plan(event)
                else:
                    self._show_result(event)

    def _show_plan(self, event: Planned) -> None:
        for project in event.networks:
            say(project_text(project, event.request), self._file)
            reaches = network_reach(project)
            if reaches:
                show(reach_table(reaches, len(project.network.workloads())), self._file)
        say(limits_text(event.request), self._file)
        if event.plan is not None and self._talk.verbose:
            show(plan_table(event.plan), self._file)

    def _show_result(self, event: Tuned) -> None:
        for found in event.regions if self._talk.verbose else ():
            if found:
                show(alternatives_table(found), self._file)
        run = {outcome.task.key: outcome.trials for outcome in event.tuning.outcomes}
        tasks = summaries(event.database, event.weights)
        if self._file.isatty() and not self._talk.verbose:
            self._draw_result()
        else:
            show(tasks_table(tasks, run=run), self._file)
        failures = failures_table(tasks)
        if failures.rows:
            show(failures, self._file)
        say(f"ended: {event.tuning.ended.value}", self._file)
        if event.tuning.interrupted:
            say(f"reached: {reached(self.board)}", self._file)

    def _draw_result(self) -> None:
        from rich.console import Console

        from ansorpy.api.display.drawing import Result

        Console(file=self._file, highlight=False).print(Result(self.board))


def project_text(project: Project, request: Request) -> str:
    """What is compiled: calls, tasks and threads."""
    calls, tasks = len(project.network.calls), len(project.tasks)
    others = len(project.all_tasks) - tasks
    more = f" (and {others} of other ways to partition it)" if others else ""
    kernels, different = counted(calls, "kernel"), counted(tasks, "different task")
    where = f"{request.target.name}, {counted(request.threads, 'thread')}"
    return f"{project.name}: {kernels}, {different}{more}, for {where}"


def _ranked_text(request: Request) -> str:
    """What ranks programs of which nothing was measured."""
    choice = request.parts.choices["cost_model"]
    if choice not in ("boosted", "analytic"):
        return "programs are ranked by the given model"
    return f"programs are ranked by {_shipped_text(request) or 'the closed-form model'}"


def _shipped_text(request: Request) -> str:
    """The model that ships for the target, if the cost model starts from it."""
    shipped = request.parts.shipped(request.target)
    return "" if shipped is None else f"the model that ships for {shipped.family}"


def limits_text(request: Request) -> str:
    """What the search is going to do, in lines: its limits, its records, and how it begins."""
    budget = request.budget
    if budget is None:
        untimed = "" if request.can_time else ", since this machine cannot"
        return f"nothing is measured{untimed}; {_ranked_text(request)}"
    limits = []
    if budget.trials is not None:
        limits.append(counted(budget.trials, "trial"))
    if budget.trials_per_task is not None:
        limits.append(f"{counted(budget.trials_per_task, 'trial')} per task")
    if budget.time_limit_s is not None:
        limits.append(duration_text(budget.time_limit_s))
    text = f"tuning up to {', '.join(limits)}, records in {request.db}"
    shipped = _shipped_text(request)
    return f"{text}\nthe search starts from {shipped}" if shipped else text
