"""``ansorpy export``: write a library of recorded programs, without tuning."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Unpack

import typer

from ansorpy.api.arguments import ExportArguments, LookupArguments, NetworkArguments
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import AsJson, ModelFile, Plugins, Quiet
from ansorpy.options import those

__all__ = ["Emitted", "export"]


class Emitted(StrEnum):
    """The form in which programs are written."""

    library = "library"
    c = "c"


_SUFFIXES = {Emitted.library: ".so", Emitted.c: ".c"}


@with_options
def export(
    model: ModelFile,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The library or C file (NAME.c).")
    ] = None,
    emit: Annotated[
        Emitted, typer.Option("--emit", help="What to write; an output name ending in .c means C.")
    ] = Emitted.library,
    plugin: Plugins = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
    **arguments: Unpack[ExportArguments],
) -> None:
    """Write a library or C file of the best recorded programs; those missing are predicted."""
    from ansorpy.api.c_export import emitted_target
    from ansorpy.api.networks import NetworkSpec, open_networks
    from ansorpy.api.parts import load_plugins
    from ansorpy.cli.files import library_path
    from ansorpy.cli.lookup import Lookup
    from ansorpy.cli.next_command import after_library
    from ansorpy.cli.progress import Talk
    from ansorpy.cli.searching import write_library
    from ansorpy.errors import UsageError
    from ansorpy.runtime.export import check_exportable

    load_plugins(plugin or ())
    lookup = Lookup(model, **those(LookupArguments, arguments))
    request, library = lookup.request, library_path(model, output, _SUFFIXES[emit])
    if emit is Emitted.c and library.suffix != _SUFFIXES[emit]:
        raise UsageError(f"{library} is not a name for a C file", hint="let it end in .c")
    check_exportable(library, emitted_target(library, request.target, request.threads))
    spec = NetworkSpec(model, **those(NetworkArguments, arguments))
    networks = open_networks([spec], request)
    lookup.warn_of_predictions()
    talk = Talk(quiet, json=as_json)
    write_library(networks, request, library, talk).tell(talk, after_library(library, model))
