"""``ansorpy compile``: search, then write a shared library and its header."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Unpack

import typer

from ansorpy.api.arguments import CompileArguments, NetworkArguments, SearchArguments
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import Against, AsJson, LatencyBound, ModelFile, Plugins, Quiet, Verbose
from ansorpy.options import those

__all__ = ["compile"]


@with_options
def compile(
    model: ModelFile,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The library; default: MODEL's name.so.")
    ] = None,
    against: Against = None,
    latency_bound: LatencyBound = None,
    plugin: Plugins = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
    **arguments: Unpack[CompileArguments],
) -> None:
    """Compile a network to a shared library with a C header, tuning it first."""
    from ansorpy.api.c_export import emitted_target
    from ansorpy.api.networks import NetworkSpec, open_networks
    from ansorpy.api.parts import load_plugins
    from ansorpy.api.request import Request
    from ansorpy.cli.files import library_path
    from ansorpy.cli.next_command import after_library
    from ansorpy.cli.peers import peers_timed
    from ansorpy.cli.progress import Talk
    from ansorpy.cli.searching import accounted, write_library
    from ansorpy.cli.values import latencies_by_network
    from ansorpy.runtime.export import check_exportable

    load_plugins(plugin or ())
    request = Request.of(**those(SearchArguments, arguments))
    bounds = latencies_by_network("--latency-bound", latency_bound or (), [model.stem])
    spec = NetworkSpec(
        model, latency_bound=bounds.get(model.stem), **those(NetworkArguments, arguments)
    )  # fmt: skip
    library = library_path(model, output)
    check_exportable(library, emitted_target(library, request.target, request.threads))
    talk = Talk(quiet, verbose, as_json)
    peers = peers_timed(model, arguments, against or ())
    with accounted(request, talk):
        networks = open_networks([spec], request)
        written = write_library(networks, request, library, talk, peers)
    written.tell(talk, after_library(library, model))
