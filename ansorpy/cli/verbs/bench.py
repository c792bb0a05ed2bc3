"""``ansorpy bench``: compare our latency with that of other engines, each in its own process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Unpack

import typer

from ansorpy.api.arguments import LookupArguments
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import Against, AsJson, ModelOption, Plugins, Quiet, Seed
from ansorpy.evaluation.tables import Table, say, show
from ansorpy.writable import demand_writable

__all__ = ["bench"]


@with_options
def bench(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A library or an .onnx file.")],
    original: ModelOption = None,
    against: Against = None,
    *,
    seed: Seed = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Also write the result, as JSON."),
    ] = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="Also time each kernel inside whole runs.")
    ] = False,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what each thread does in runs, for Perfetto."),
    ] = None,
    streams: Annotated[
        int,
        typer.Option("--streams", min=1, help="Callers at the same time, each with --threads."),
    ] = 1,
    plugin: Plugins = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
    **arguments: Unpack[LookupArguments],
) -> None:
    """Time a network against other engines, one at a time, in alternating bursts.

    Where --dim lists sizes, at each of these.
    """
    from ansorpy.api.evaluate.bench import bench as timed
    from ansorpy.cli.status_line import StatusLine

    for file in (output, trace):
        if file is not None:
            demand_writable(file, reads=[model] if original is None else [model, original])
    with StatusLine(quiet=quiet, as_json=as_json) as status:
        result = timed(
            model, original, against=against or (), seed=seed, profile=profile, trace=trace,
            plugins=plugin or (), streams=streams, progress=status, **arguments,
        )  # fmt: skip
    if as_json:
        print(json.dumps({"event": "result", **result.to_dict()}))
    else:
        for part in result.parts():
            show(part) if isinstance(part, Table) else say(part)
    if output is not None:
        output.write_text(json.dumps(result.to_dict(), indent=2) + "\n")
    for file in (output, trace):
        if file is not None and not as_json:
            print(f"wrote {file}")
