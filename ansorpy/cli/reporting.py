"""Write the HTML report of a run."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from ansorpy.cli.files import open_database
from ansorpy.cli.lookup import Lookup
from ansorpy.errors import UsageError
from ansorpy.evaluation.page.facts import Shown
from ansorpy.evaluation.page.results import read_bench, read_verified
from ansorpy.evaluation.page.write import demand_charts, write_page
from ansorpy.writable import demand_writable

if TYPE_CHECKING:
    from ansorpy.api.request import Request
    from ansorpy.runtime.execution_plan import ExecutionPlan

__all__ = ["demand_report", "recorded_plan", "write_report"]


def demand_report(path: Path, request: Request) -> None:
    """Check that a report of a search can be written; call this before the search.

    Raises:
        UsageError: *request* searches nothing, or *path* cannot be written.
        MissingDependency: The library that draws charts is not installed.
    """
    if request.budget is None:
        raise UsageError(
            "a report shows a search, and this effort measures nothing",
            hint="leave out --report, or search: --effort quick",
        )
    demand_charts()
    demand_writable(path)


def write_report(
    path: Path,
    database: Path,
    *,
    run: int | None = None,
    tasks: Collection[str] = (),
    plan: ExecutionPlan | None = None,
    bench: Path | None = None,
    verified: Path | None = None,
) -> None:
    """Write a run of *database* to *path*, as :func:`~ansorpy.evaluation.page.write.write_page`.

    *bench* and *verified* are files of ``bench --json`` and ``verify --json``.
    """
    shown = Shown(
        plan,
        None if bench is None else read_bench(bench),
        None if verified is None else read_verified(verified),
    )
    with open_database(database) as opened:
        write_page(path, opened, run=run, tasks=tasks, shown=shown)
    print(f"wrote {path}")


def recorded_plan(lookup: Lookup) -> ExecutionPlan:
    """The plan of a network, with the programs that were recorded for it.

    Raises:
        UsageError: The file is a library.
    """
    from ansorpy.api.assemble import plan_of
    from ansorpy.cli.models import finished_from, is_library

    if is_library(lookup.model):
        raise UsageError(
            f"{lookup.model} is a library, which does not name its tasks",
            hint="give the ONNX file that it was made from",
        )
    lookup.warn_of_predictions()
    finished = finished_from(lookup)
    return plan_of(finished.project, finished.chosen, lookup.request.threads)
