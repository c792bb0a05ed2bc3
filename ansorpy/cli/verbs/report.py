"""``ansorpy report``: show what tuning found, and which programs failed and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ansorpy.cli.options import AsJson, DatabaseFile

__all__ = ["report"]


def report(
    database: DatabaseFile = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what the last run did when, for Perfetto."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Summarize a tuning database: best time of each task, failures by kind with a first reason."""
    from ansorpy.cli.files import open_database
    from ansorpy.config import default_database
    from ansorpy.evaluation.tables import show
    from ansorpy.evaluation.tuning import failures_table, summaries, tasks_table
    from ansorpy.evaluation.tuning_trace import trace_of_tuning
    from ansorpy.writable import demand_writable

    path = database or default_database()
    if trace is not None:
        demand_writable(trace)
        with open_database(path) as opened:
            found = trace_of_tuning(opened)
        print(f"wrote {found.save(trace)}: {found!r}")
        return
    with open_database(path) as opened:
        tasks, unsigned = summaries(opened), opened.unsigned()
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
