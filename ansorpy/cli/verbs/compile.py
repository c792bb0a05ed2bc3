"""``ansorpy compile``: search, then write a shared library and its header."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Unpack

import typer

from ansorpy.api.arguments import CompileArguments, NetworkArguments, SearchArguments
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import (
    Against,
    AsJson,
    Emit,
    LatencyBound,
    ModelFile,
    PackOption,
    Plugins,
    Quiet,
    Verbose,
)
from ansorpy.options import those

__all__ = ["compile"]


@with_options
def compile(
    model: ModelFile,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The library; default: MODEL's name.so.")
    ] = None,
    *,
    emit: Emit = None,
    pack: PackOption = None,
    against: Against = None,
    latency_bound: LatencyBound = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Also write an HTML page about the search."),
    ] = None,
    plugin: Plugins = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
    **arguments: Unpack[CompileArguments],
) -> None:
    """Compile a network to a shared library with a C header, tuning it first."""
    from ansorpy.api.emitted import emitted_target
    from ansorpy.api.evaluate.report import demand_report, write_report
    from ansorpy.api.networks import NetworkSpec, open_networks
    from ansorpy.api.parts import load_plugins
    from ansorpy.cli.files import emitted_path
    from ansorpy.cli.peers import peers_timed
    from ansorpy.cli.progress import Talk
    from ansorpy.cli.searching import accounted, write_library
    from ansorpy.cli.values import latencies_by_network, requests_of
    from ansorpy.evaluation.page.facts import Shown
    from ansorpy.runtime.export import check_exportable

    load_plugins(plugin or ())
    requests = requests_of(those(SearchArguments, arguments))
    bounds = latencies_by_network("--latency-bound", latency_bound or (), [model.stem])
    spec = NetworkSpec(
        model, latency_bound=bounds.get(model.stem), **those(NetworkArguments, arguments)
    )  # fmt: skip
    library = emitted_path(model, output, emit)
    for request in requests:
        check_exportable(library, emitted_target(library, request.target, request.threads), pack)
    if report is not None:
        demand_report(report, requests[0])
    talk = Talk(quiet, verbose, as_json)
    peers = peers_timed(model, arguments, against or ())
    with accounted(requests[0], talk):
        runs = [(open_networks([spec], request), request) for request in requests]
        written = write_library(runs, library, pack, talk, peers)
    written.tell(talk, model)
    if report is not None:
        tasks, shown = runs[0][0].tasks, Shown(written.versions[0].plan)
        page = write_report(report, requests[0].db, tasks=tasks, shown=shown)
        print(json.dumps({"event": "report", "page": str(page)}) if as_json else f"wrote {page}")
