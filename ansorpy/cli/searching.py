"""Run a search from the terminal: progress, Ctrl-C, a table of time spent, and the library."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ansorpy.api.assemble import kernels_median_s, model_of, plan_of
from ansorpy.api.c_export import emitted_target, in_c
from ansorpy.api.networks import Networks, tune_networks
from ansorpy.api.request import Request
from ansorpy.cli.interrupt import graceful_interrupt
from ansorpy.cli.progress import ProgressDisplay, milliseconds
from ansorpy.errors import Interrupted, NoValidProgram
from ansorpy.evaluation.proofs import ProofCounts
from ansorpy.evaluation.tables import show
from ansorpy.evaluation.tuning import activities_table
from ansorpy.profiler import Activity, Profiler, profiled
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.export import export as export_plan
from ansorpy.runtime.library.linker import refuse_size

__all__ = ["accounted", "followed", "write_library"]


@contextmanager
def followed(request: Request, *, quiet: bool = False) -> Iterator[Request]:
    """*request* with its search shown on stderr and stopped by Ctrl-C where nothing is lost.

    *quiet*: only progress is shown.

    Raises:
        Interrupted: The user stopped the search; the records so far are in the database.
    """
    with graceful_interrupt() as interrupt, ProgressDisplay(quiet=quiet) as display:
        try:
            yield replace(request, stop=interrupt.stop_here, listener=display)
        except KeyboardInterrupt:
            raise Interrupted(
                f"interrupted; the trials so far are in {request.db}",
                hint="run the same command again to continue, or export what was found",
            ) from None


@contextmanager
def accounted(request: Request) -> Iterator[None]:
    """Print how the run spent its time on stderr when the block ends, if *request* measures.

    This happens even if the user stopped the run or no program was correct.
    """
    profiler = Profiler()
    try:
        with profiler:
            yield
    except (Interrupted, NoValidProgram):
        _show_activities(profiler, request)
        raise
    _show_activities(profiler, request)


def _show_activities(profiler: Profiler, request: Request) -> None:
    if request.budget is not None:
        show(activities_table(profiler.seconds), sys.stderr)


def write_library(networks: Networks, request: Request, library: Path) -> ExecutionPlan:
    """Compile the one network of *networks* to *library*; print its path, time and memory use.

    Returns the plan of what it wrote.  C is written if the name ends in ``.c``, whatever target the
    programs were chosen for.

    Raises:
        UsageError: No library holds constants of this size.
    """
    target = emitted_target(library, request.target, request.threads)
    if target is request.target:
        [project] = networks.projects
        refuse_size(project.constant_bytes)
    with followed(request) as following:
        [finished] = tune_networks(networks, following)
    total_s = kernels_median_s(finished.project, finished.chosen)
    with profiled(Activity.ASSEMBLE):
        if target is request.target:
            model = model_of(finished.project, finished.chosen, request.threads)
            written, plan = model.export(library), model.plan
        else:  # C, which need not run on this machine
            in_project, chosen = in_c(finished.project, finished.chosen, target)
            plan = plan_of(in_project, chosen, request.threads)
            written = export_plan(plan, library)
    print(
        f"wrote {written}" + ("" if total_s is None else f" ({milliseconds(total_s)} in kernels)")
    )
    print(plan.footprint)
    print(ProofCounts.of([proof for program in finished.chosen for proof in program.proofs]))
    return plan
