"""``ansorpy db``: list tasks or runs of a tuning database, replay, repair."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ansorpy.api.plugins import load_plugins
from ansorpy.cli.options import AsJson, DatabaseFile, Plugins
from ansorpy.config import database_or_default
from ansorpy.errors import UsageError
from ansorpy.evaluation.tables import Table, show
from ansorpy.writable import demand_writable

if TYPE_CHECKING:
    from ansorpy.measure.records.database import Database

__all__ = ["db"]


_WITH_THESE = "write: ansorpy db {}, with the same options"


class Action(StrEnum):
    """What ``ansorpy db`` does with the database."""

    tasks = "tasks"
    runs = "runs"
    replay = "replay"
    repair = "repair"


def db(
    action: Annotated[
        Action,
        typer.Argument(
            metavar="tasks|runs|replay|repair",
            help="tasks, runs: list them; replay: repeat a run and compare; repair: save what can "
            "be read of a damaged database.",
        ),
    ] = Action.tasks,
    database: DatabaseFile = None,
    run: Annotated[
        int | None, typer.Option(min=1, help="replay: number of the run; default: the last one.")
    ] = None,
    plugin: Plugins = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="repair: the file to write.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List a tuning database, replay a run of it, or repair it."""
    from ansorpy.api.evaluate.databases import open_database

    file = database_or_default(database)
    if action is not Action.replay and (run is not None or plugin):
        raise UsageError("--run and --plugin are for a replay", hint=_WITH_THESE.format("replay"))
    if output is not None and action is not Action.repair:
        raise UsageError("--output is for a repair", hint=_WITH_THESE.format("repair"))
    if action is Action.repair:
        _repair(file, output, as_json)
        return
    with open_database(file) as opened:
        if action is Action.runs:
            _runs(opened, as_json)
        elif action is Action.replay:
            _replay(opened, run, plugin, as_json)
        else:
            _tasks(opened, as_json)


def _tasks(database: Database, as_json: bool) -> None:
    from ansorpy.evaluation.tuning import summaries, tasks_table

    tasks = summaries(database)
    if as_json:
        print(json.dumps([task.to_dict() for task in tasks], indent=2))
    else:
        show(tasks_table(tasks, str(database.path)))


def _repair(path: Path, output: Path | None, as_json: bool) -> None:
    from ansorpy.api.evaluate.databases import demand_database
    from ansorpy.measure.records.repair import repair

    demand_database(path)
    made = output or path.with_name(f"{path.stem}.repaired{path.suffix}")
    demand_writable(made, reads=[path])
    saved = repair(path, made)
    if as_json:
        print(json.dumps({"saved": str(made), "tables": [asdict(t) for t in saved]}, indent=2))
        return
    rows = tuple(
        (t.table, str(t.rows), "all" if t.is_all and not t.unfit else "what can be read")
        for t in saved
    )
    show(Table(f"saved to {made}", ("table", "rows", ""), rows, frozenset({"rows"})))


def _runs(database: Database, as_json: bool) -> None:
    from ansorpy.evaluation.tuning import sessions_table

    runs = database.sessions.all()
    if as_json:
        print(json.dumps([run.model_dump() for run in runs], indent=2))
    else:
        show(sessions_table(runs))


def _replay(database: Database, run: int | None, plugin: Plugins, as_json: bool) -> None:
    from ansorpy.api.replay import replay
    from ansorpy.evaluation.replays import changed_versions, rerun_table
    from ansorpy.measure.versions import versions

    load_plugins(plugin or ())
    found = replay(database.path, run)
    recorded = {session.id: session.versions for session in database.sessions.all()}
    for line in changed_versions(recorded[found[0].run], versions()):
        print(line, file=sys.stderr)
    if as_json:
        print(json.dumps([{**asdict(again), "same": again.is_same} for again in found], indent=2))
    for again in found:
        if not as_json:
            show(rerun_table(again))
        again.demand()
