"""The HTML report of a tuning run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Unpack

from ansorpy.api.arguments import LookupArguments, demand_no_network
from ansorpy.api.assemble import plan_of
from ansorpy.api.evaluate.databases import open_database
from ansorpy.api.evaluate.libraries import is_library
from ansorpy.api.evaluate.lookup import Lookup
from ansorpy.api.evaluate.models import finished_from
from ansorpy.api.request import Request
from ansorpy.config import database_or_default
from ansorpy.errors import UsageError
from ansorpy.evaluation.bench.result import Comparison, SizesComparison
from ansorpy.evaluation.page.facts import Extras
from ansorpy.evaluation.page.results import read_bench, read_verified
from ansorpy.evaluation.page.write import demand_charts, write_page
from ansorpy.evaluation.verify import Verification
from ansorpy.options import with_arguments
from ansorpy.quantities import path_of
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.writable import demand_writable

__all__ = ["demand_report", "report", "write_report"]


@with_arguments
def report(
    path: str | Path,
    network: str | Path | None = None,
    *,
    run: int | None = None,
    bench: str | Path | Mapping[str, Any] | Comparison | SizesComparison | None = None,
    verified: str | Path | Mapping[str, Any] | Verification | None = None,
    **arguments: Unpack[LookupArguments],
) -> Path:
    """Write a tuning run of the database as one HTML page that needs no network connection.

    Args:
        path: The page.
        network: The ONNX file that was tuned: its tasks and its memory plan are shown.  Otherwise,
            all tasks of the run are.
        run: The number of the run; default: the last one that searched.
        bench: What :func:`ansorpy.bench` returned for one size, or the file of ``ansorpy bench``.
        verified: What :func:`ansorpy.verify` returned, or the file of ``ansorpy verify``.
        **arguments

    Returns:
        *path*.

    Raises:
        UsageError: There is no such run, *network* is a library or is missing for an argument about
            it, *bench* compares several sizes, or *path* cannot be written.
        MissingDependency: The library that draws charts is not installed.
        ForeignFile: There is no such database, or a file is no result.
    """
    page = path_of(path, "a page")
    if isinstance(bench, SizesComparison):
        raise UsageError(
            f"the page shows one size, but bench= compares {len(bench.sizes)}",
            hint="give bench one size, as in dims={'n': 8}",
        )
    plan, tasks = None, list[str]()
    if network is None:
        demand_no_network(arguments)
    else:
        lookup = Lookup(path_of(network, "a network"), **arguments)
        plan, tasks = _recorded_plan(lookup), [task.key for task in lookup.project.all_tasks]
    timed = bench.to_dict() if isinstance(bench, Comparison) else bench
    right = verified.to_dict() if isinstance(verified, Verification) else verified
    extras = Extras(
        plan,
        None if timed is None else read_bench(_file(timed)),
        None if right is None else read_verified(_file(right)),
    )
    database = database_or_default(arguments.get("db"))
    return write_report(page, database, run=run, tasks=tasks, extras=extras)


def write_report(
    path: Path,
    database: Path,
    *,
    run: int | None = None,
    tasks: Collection[str] = (),
    extras: Extras | None = None,
) -> Path:
    """As :func:`~ansorpy.evaluation.page.write.write_page`; returns *path*."""
    with open_database(database) as opened:
        write_page(path, opened, run=run, tasks=tasks, extras=extras)
    return path


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


def _file(given: str | Path | Mapping[str, Any]) -> Path | Mapping[str, Any]:
    return given if isinstance(given, Mapping) else path_of(given, "a result")


def _recorded_plan(lookup: Lookup) -> ExecutionPlan:
    """The plan of a network, with the programs that were recorded for it.

    Raises:
        UsageError: The file is a library.
    """
    if is_library(lookup.model):
        raise UsageError(
            f"{lookup.model} is a library, which does not name its tasks",
            hint="give the ONNX file that it was made from",
        )
    lookup.warn_of_predictions()
    finished = finished_from(lookup)
    return plan_of(finished.project, finished.chosen, lookup.request.threads)
