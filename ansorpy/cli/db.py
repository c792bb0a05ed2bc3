"""``ansorpy db``: what a tuning database holds; leaving tasks out of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ansorpy.cli.options import AsJson

__all__ = ["db"]


def db(
    file: Annotated[Path, typer.Argument(metavar="DB", help="A tuning database.")] = Path(
        "ansorpy.db"
    ),
    sessions: Annotated[bool, typer.Option("--sessions", help="List runs, not tasks.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the tasks (or the runs) that a tuning database holds."""
    from ansorpy.cli.files import open_database
    from ansorpy.report.tables import show
    from ansorpy.report.tuning import sessions_table, summaries, tasks_table

    with open_database(file) as database:
        if sessions:
            runs = database.sessions()
            if as_json:
                print(json.dumps([run.model_dump() for run in runs], indent=2))
            else:
                show(sessions_table(runs))
            return
        tasks = summaries(database)
        if as_json:
            print(json.dumps([task.to_dict() for task in tasks], indent=2))
        else:
            show(tasks_table(tasks, str(file)))
