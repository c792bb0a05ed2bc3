"""``ansorpy doctor``: show what works on this machine and which parts are available."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ansorpy.api.plugins import load_plugins
from ansorpy.cli.options import AsJson, Plugins, refuse_unused
from ansorpy.errors import UsageError
from ansorpy.evaluation.tables import Table, show

__all__ = ["doctor"]

Calibrate = Annotated[bool, typer.Option("--calibrate", help="Measure this machine's rates again.")]


def doctor(
    calibrate: Calibrate = False,
    as_json: AsJson = False,
    parts: Annotated[
        bool, typer.Option("--parts", help="List strategies, selectors and other parts instead.")
    ] = False,
    environment: Annotated[
        bool, typer.Option("--environment", help="List environment variables instead.")
    ] = False,
    plugin: Plugins = None,
) -> None:
    """Show what works on this machine, and what to install for the rest."""
    from ansorpy.evaluation.doctor import environment_table, examine

    if plugin and not parts:
        raise UsageError("--plugin is for the list of parts", hint="add --parts, or leave it out")
    if environment and parts:
        raise UsageError("--parts and --environment are two lists", hint="ask for one of them")
    if environment or parts:
        listed = "doctor --environment" if environment else "doctor --parts"
        refuse_unused(listed, {"--calibrate": calibrate})
    if environment:
        _list(environment_table(), as_json)
        return
    if parts:
        # This import needs everything that is examined below.
        from ansorpy.cli.parts import parts_table

        load_plugins(plugin or ())
        _list(parts_table(), as_json)
        return
    examination = examine(calibrate=calibrate)
    if as_json:
        print(json.dumps(examination.to_dict(), indent=2))
    else:
        show(examination.table())
    examination.demand()


def _list(table: Table, as_json: bool) -> None:
    rows = [dict(zip(table.heading, row, strict=True)) for row in table.rows]
    print(json.dumps(rows, indent=2)) if as_json else show(table)
