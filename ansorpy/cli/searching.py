"""Run a search from the terminal: progress, Ctrl-C, a table of time spent, and the library."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ansorpy.api.assemble import kernels_median_s
from ansorpy.api.emitted import emitted_plan, emitted_target
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
from ansorpy.runtime.export import export_versions
from ansorpy.runtime.library.forms import Pack
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


def write_library(
    runs: Sequence[tuple[Networks, Request]], library: Path, pack: Pack | None
) -> list[ExecutionPlan]:
    """Compile a network to *library*; print its path, time and memory use.

    Returns the plan of each version.  C is written if the name ends in ``.c``, whatever target the
    programs were chosen for.

    Args:
        runs: The network for each target that the library has a version for.

    Raises:
        UsageError: No library holds constants of this size.
    """
    plans, times, found = [], [], []
    for networks, request in runs:
        if emitted_target(library, request.target, request.threads) is request.target:
            [project] = networks.projects
            refuse_size(project.constant_bytes)
        with followed(request) as following:
            [finished] = tune_networks(networks, following)
        with profiled(Activity.ASSEMBLE):
            plan = emitted_plan(finished.project, finished.chosen, library, request.threads, pack)
        plans.append(plan)
        times.append(kernels_median_s(finished.project, finished.chosen))
        found += [proof for program in finished.chosen for proof in program.proofs]
    with profiled(Activity.ASSEMBLE):
        if len(plans) == 1:
            written = export_plan(plans[0], library, pack)
        else:
            written = export_versions(plans, library, pack)
    known = ", ".join(f"{milliseconds(time)} in kernels" for time in times if time is not None)
    print(f"wrote {written}" + (f" ({known})" if known else ""))
    for plan in plans:
        print(plan.footprint if len(plans) == 1 else f"{plan.target.name}: {plan.footprint}")
    print(ProofCounts.of(found))
    return plans
