"""Code that the searching verbs share: request, search with progress, report."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ansorpy.api.assemble import kernels_median_s, model_of
from ansorpy.api.deciding import decisions, fastest
from ansorpy.api.in_c import emitted_target, in_c
from ansorpy.api.parts import Parts
from ansorpy.api.project import Project, open_project
from ansorpy.api.request import Request, as_target
from ansorpy.api.session import Session, open_session
from ansorpy.api.several import Aim, Finished, Several, objective_for
from ansorpy.cli.interrupt import graceful_interrupt
from ansorpy.cli.options import Effort, Precision
from ansorpy.cli.progress import ProgressDisplay, milliseconds
from ansorpy.cli.values import (
    by_network,
    parse_dims,
    parse_duration,
    parse_latency,
    parse_positive,
    parse_shapes,
)
from ansorpy.errors import Interrupted, NoValidProgram
from ansorpy.measure.workers import LOCAL
from ansorpy.phases import Part, Phases, phase
from ansorpy.report.plan import plan_table
from ansorpy.report.tables import show
from ansorpy.report.tuning import failures_table, phases_table, summaries, tasks_table
from ansorpy.report.ways import ways_table
from ansorpy.tasks.objective import Objective
from ansorpy.tasks.tune import Tuning

__all__ = [
    "accounted", "aims_of", "export", "make_request", "plan_text", "project_of", "search",
    "search_all", "total_text",
]  # fmt: skip


def make_request(
    *,
    effort: Effort = Effort.none,
    trials: int | None = None,
    trials_per_task: int | None = None,
    time_limit: str | None = None,
    db: Path | None = None,
    target: str = "host",
    threads: int | None = None,
    precision: Precision = Precision.default,
    workers: str = LOCAL,
    parts: Parts | None = None,
    seed: int = 0,
) -> Request:
    """Make the request from command-line values."""
    made_for = as_target(target)
    return Request(
        effort=effort.value,
        trials=trials,
        trials_per_task=trials_per_task,
        time_limit_s=parse_duration(time_limit),
        target=made_for,
        threads=made_for.threads(threads),
        precision=precision.value,
        workers=workers,
        parts=parts or Parts(),
        db=db,
        seed=seed,
    )


def project_of(
    model: Path,
    request: Request,
    shape: Sequence[str] | None,
    dim: Sequence[str] | None,
    name: str | None = None,
) -> Project:
    """The network in *model*, with sizes given as ``--shape`` and ``--dim`` values.

    Its name is *name*, or its file name without ``.onnx``.
    """
    shapes, dims = parse_shapes(shape or ()), parse_dims(dim or ())
    with phase(Part.OPEN):
        project = open_project(model, request, shapes=shapes, dims=dims)
    return replace(project, name=name or project.name)


def aims_of(
    objective: str,
    names: Sequence[str],
    bound: Sequence[str] | None,
    baseline: Sequence[str] | None = None,
    weight: Sequence[str] | None = None,
) -> tuple[Objective, list[Aim]]:
    """The objective, and each network's aim by ``--bound``, ``--baseline`` and ``--weight``.

    Raises:
        UsageError: An unknown objective, one that does not use a given figure, an invalid value,
            or an unknown network name.
    """
    bounds = by_network("--bound", bound or (), names)
    baselines = by_network("--baseline", baseline or (), names)
    weights = by_network("--weight", weight or (), names)
    aims = [
        Aim(
            parse_positive("--weight", weights.get(name, "1")),
            parse_latency(bounds[name]) if name in bounds else None,
            parse_latency(baselines[name]) if name in baselines else None,
        )
        for name in names
    ]
    return objective_for(objective, aims), aims


@contextmanager
def accounted(request: Request) -> Iterator[None]:
    """Print on stderr at the end where the time went, if *request* measures anything.

    It does so even if the user stopped the run or no program was correct.
    """
    phases = Phases()
    try:
        with phases:
            yield
    except (Interrupted, NoValidProgram):
        _show_phases(phases, request)
        raise
    _show_phases(phases, request)


def _show_phases(phases: Phases, request: Request) -> None:
    if request.budget(network=True) is not None:
        show(phases_table(phases.seconds), sys.stderr)


def search(project: Project, request: Request, *, quiet: bool = False) -> Finished:
    """Tune the network's tasks, with progress on stderr; return its partition and programs.

    Raises:
        Interrupted: The user stopped the search; the records so far are in the database.
    """
    [finished] = search_all(Several([project], [Aim()]), request, quiet=quiet)
    return finished


def search_all(several: Several, request: Request, *, quiet: bool = False) -> list[Finished]:
    """The same for several networks.

    Raises:
        Interrupted: The user stopped the search; the records so far are in the database.
    """
    if not quiet:
        for project in several.projects:
            print(plan_text(project, request), file=sys.stderr)
    with graceful_interrupt() as interrupt, ProgressDisplay() as display:
        request = replace(request, stop=interrupt.stop_here, listener=display)
        with open_session(request) as session:
            try:
                return _searched(several, session, quiet)
            except KeyboardInterrupt:
                raise _interrupted(request) from None


def _searched(several: Several, session: Session, quiet: bool) -> list[Finished]:
    if not quiet:
        _show_plan(several, session)
    tuning = several.tune(session)
    if tuning is not None and not quiet:
        _show_ways(several, session)
        _show_tasks(several, session, tuning)
        print(f"ended: {tuning.ended.value}", file=sys.stderr)
    if tuning is not None and tuning.interrupted:
        raise KeyboardInterrupt
    return several.choose(session)


def _show_plan(several: Several, session: Session) -> None:
    planned = several.plan(session)
    if planned is not None:
        show(plan_table(planned), sys.stderr)


def _show_ways(several: Several, session: Session) -> None:
    for project in several.projects:
        if project.regions:
            show(ways_table(decisions(project, session.recorded_s)), sys.stderr)


def _show_tasks(several: Several, session: Session, tuning: Tuning) -> None:
    """Show the tasks that the networks call when cut in the fastest known ways."""
    run = {outcome.task.key: outcome.allotment for outcome in tuning.outcomes}
    projects = [fastest(project, session.recorded_s) for project in several.projects]
    tasks = summaries(session.database, replace(several, projects=projects).weights)
    show(tasks_table(tasks, run=run), sys.stderr)
    failures = failures_table(tasks)
    if failures.rows:
        show(failures, sys.stderr)


def _interrupted(request: Request) -> Interrupted:
    if request.db is None:
        return Interrupted("interrupted")
    return Interrupted(
        f"interrupted; the trials so far are in {request.db}",
        hint="run the same command again to go on, or export what was found",
    )


def export(finished: Finished, request: Request, library: Path) -> None:
    """Assemble the model and write it to *library*; print its path and memory use.

    A name that ends in ``.c`` gets C, whatever the programs were chosen for.
    """
    target = emitted_target(library, request.target, request.threads)
    with phase(Part.ASSEMBLE):
        project, chosen = finished.project, finished.chosen
        if target is not request.target:
            project, chosen = in_c(project, chosen, target)
        model = model_of(project, chosen, request.threads)
        written = model.export(library)
    total = total_text(finished)
    print(f"wrote {written}" + (f" ({total})" if total else ""))
    print(model.footprint)


def plan_text(project: Project, request: Request) -> str:
    """What the search is going to do: calls, tasks, threads and limits."""
    calls, tasks = len(project.network.calls), len(project.tasks)
    where = f"{request.target.name}, {request.threads} threads"
    others = len(project.all_tasks) - tasks
    more = f" (and {others} of other ways to cut it)" if others else ""
    text = f"{project.name}: {calls} kernels, {tasks} different tasks{more}, for {where}"
    budget = request.budget(network=True)
    if budget is None:
        return f"{text}; measuring nothing"
    limits = []
    if budget.trials is not None:
        limits.append(f"{budget.trials} trials")
    if budget.trials_per_task is not None:
        limits.append(f"{budget.trials_per_task} trials a task")
    if budget.time_limit_s is not None:
        limits.append(f"{budget.time_limit_s:g} s")
    return f"{text}; tuning up to {', '.join(limits)}, records in {request.db}"


def total_text(finished: Finished) -> str:
    """The total time of all kernels as text; empty if one was never timed."""
    total = kernels_median_s(finished.project, finished.chosen)
    return "" if total is None else f"{milliseconds(total)} in kernels"
