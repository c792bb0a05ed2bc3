"""``ansorpy report``: show what tuning found, and which programs failed and why."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Unpack

import typer

from ansorpy.api.arguments import LookupArguments, demand_no_network
from ansorpy.api.plugins import load_plugins
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import AsJson, Plugins
from ansorpy.config import database_or_default
from ansorpy.errors import UsageError
from ansorpy.evaluation.tables import show
from ansorpy.writable import demand_writable

__all__ = ["report"]


@with_options
def report(
    model: Annotated[
        Path | None,
        typer.Argument(metavar="[MODEL]", help="The network, an .onnx file: only its tasks."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a run as an HTML page with charts."),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what a run did when, for Perfetto."),
    ] = None,
    run: Annotated[
        int | None,
        typer.Option(min=1, help="--html, --trace: number of the run; default: the last one."),
    ] = None,
    bench: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="--html: also show a result of bench -o."),
    ] = None,
    verify: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="--html: also show a result of verify --json."),
    ] = None,
    *,
    as_json: AsJson = False,
    plugin: Plugins = None,
    **arguments: Unpack[LookupArguments],
) -> None:
    """Summarize a tuning database: best time of each task, failures by kind with a first reason.

    With --html, write a run as one page that needs no network connection.
    """
    if model is None:
        demand_no_network(arguments)
    database = database_or_default(arguments.get("db"))
    of_page = {"--bench": bench, "--verify": verify}
    of_run = {} if trace is not None else {"--run": run}
    given = [name for name, value in {**of_page, **of_run}.items() if value is not None]
    if html is None and given:
        raise UsageError(f"{given[0]} is for a page", hint="name its file: --html out.html")
    reads = [file for file in (database, model, bench, verify) if file is not None]
    demand_writable(*(file for file in (html, trace) if file is not None), reads=reads)
    load_plugins(plugin or ())
    if trace is not None:
        tasks = () if model is None else tuple(_calls(model, plugin or (), arguments))
        _trace(database, run, tasks, trace)
    if html is not None:
        from ansorpy.api.evaluate.report import report as written

        page = written(html, model, run=run, bench=bench, verified=verify, **arguments)
        print(f"wrote {page}")
    if html is None and trace is None:
        calls = None if model is None else _calls(model, plugin or (), arguments)
        _summarize(database, calls, as_json)


def _calls(model: Path, plugins: Sequence[Path], arguments: LookupArguments) -> Mapping[str, float]:
    """The calls of each task of *model*, by its key."""
    from ansorpy.api.evaluate.lookup import Lookup

    return Lookup(model, plugins=plugins, **arguments).project.most_calls


def _trace(path: Path, run: int | None, tasks: Collection[str], trace: Path) -> None:
    from ansorpy.api.evaluate.databases import open_database
    from ansorpy.evaluation.tuning_trace import trace_of_tuning

    with open_database(path) as opened:
        found = trace_of_tuning(opened, run, tasks)
    print(f"wrote {found.save(trace)}: {found.name}; ui.perfetto.dev opens it")


def _summarize(path: Path, calls: Mapping[str, float] | None, as_json: bool) -> None:
    from ansorpy.api.evaluate.databases import open_database
    from ansorpy.evaluation.tuning import failures_table, summaries, tasks_table

    with open_database(path) as opened:
        tasks, unsigned = summaries(opened, calls), opened.unsigned()
    if as_json:
        print(
            json.dumps(
                {"tasks": [task.to_dict() for task in tasks], "unsigned": unsigned}, indent=2
            )
        )
        return
    show(tasks_table(tasks, str(path)))
    failures = failures_table(tasks)
    if failures.rows:
        print()
        show(failures)
    if unsigned:
        print(
            f"\n{unsigned} results were not recorded by you on this machine: programs among them"
            " are checked and measured again before they are used"
        )
