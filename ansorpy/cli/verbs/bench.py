"""``ansorpy bench``: compare our latency with that of other engines, each in its own process."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Unpack

import typer

from ansorpy.api.arguments import LookupArguments
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import Against, ModelOption, Plugins, Seed

__all__ = ["bench"]


@with_options
def bench(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A library or an .onnx file.")],
    original: ModelOption = None,
    against: Against = None,
    seed: Seed = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Result as JSON; - for stdout.")
    ] = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="Also time each kernel call inside whole runs.")
    ] = False,
    plugin: Plugins = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what each thread does in runs, for Perfetto."),
    ] = None,
    **arguments: Unpack[LookupArguments],
) -> None:
    """Time a network against other engines, one at a time, in alternating bursts.

    Where --dim lists sizes, at each of these.
    """
    from ansorpy.api.evaluate.bench import bench as timed
    from ansorpy.evaluation.tables import Table, show
    from ansorpy.writable import demand_writable

    prints_json = json_file == Path("-")
    for file in (None if prints_json else json_file, trace):
        if file is not None:
            demand_writable(file)
    result = timed(
        model, original, against=against or (), seed=seed, profile=profile, trace=trace,
        plugins=plugin or (), progress=_progress, **arguments,
    )  # fmt: skip
    text = json.dumps(result.to_dict(), indent=2)
    if prints_json:
        print(text)
        return
    for part in result.parts():
        show(part) if isinstance(part, Table) else print(part)
    if json_file is not None:
        json_file.write_text(text + "\n")


def _progress(line: str) -> None:
    print(line, file=sys.stderr)
