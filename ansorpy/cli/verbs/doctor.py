"""``ansorpy doctor``: what works on this machine, and which parts are available."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ansorpy.cli.options import AsJson, Plugins

__all__ = ["doctor"]

Calibrate = Annotated[
    bool, typer.Option("--calibrate", help="Measure what this machine does a second, anew.")
]


def doctor(
    calibrate: Calibrate = False,
    as_json: AsJson = False,
    parts: Annotated[
        bool, typer.Option("--parts", help="List strategies, selectors and their like instead.")
    ] = False,
    plugin: Plugins = None,
) -> None:
    """Say what works on this machine, and what to install for what does not."""
    from ansorpy.report.doctor import examine
    from ansorpy.report.tables import show

    if parts:
        # These need all that is examined below.
        from ansorpy.api.parts import load_plugins
        from ansorpy.cli.parts import parts_table

        load_plugins(plugin or ())
        table = parts_table()
        rows = [dict(zip(table.heading, row, strict=True)) for row in table.rows]
        print(json.dumps(rows, indent=2)) if as_json else show(table)
        return
    examination = examine(calibrate=calibrate)
    if as_json:
        print(json.dumps(examination.to_dict(), indent=2))
    else:
        show(examination.table())
    examination.demand()
