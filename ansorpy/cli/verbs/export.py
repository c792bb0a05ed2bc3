"""``ansorpy export``: write a library of recorded programs, without tuning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Unpack

import typer

from ansorpy.api.arguments import ExportArguments, LookupArguments, NetworkArguments
from ansorpy.api.plugins import load_plugins
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import AsJson, Emit, ModelFile, PackOption, Plugins, Quiet
from ansorpy.options import those

__all__ = ["export"]


@with_options
def export(
    model: ModelFile,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Default: MODEL's name.so, or .c.")
    ] = None,
    *,
    emit: Emit = None,
    pack: PackOption = None,
    plugin: Plugins = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
    **arguments: Unpack[ExportArguments],
) -> None:
    """Write a library of the best recorded programs; those missing are predicted."""
    from ansorpy.api.emitted import default_form, emitted_target
    from ansorpy.api.evaluate.lookup import Lookup
    from ansorpy.api.networks import NetworkSpec, open_networks
    from ansorpy.cli.files import emitted_path
    from ansorpy.cli.progress import Talk
    from ansorpy.cli.searching import write_library
    from ansorpy.cli.values import targets_of
    from ansorpy.runtime.export import check_exportable

    load_plugins(plugin or ())
    known = those(LookupArguments, arguments)
    names = targets_of(known.get("target"))
    lookups = [Lookup(model, plugins=plugin or (), **{**known, "target": name}) for name in names]
    asked = [lookup.request for lookup in lookups]
    library = emitted_path(model, output, emit, default_form(asked[0].target))
    emitted = [emitted_target(library, r.target, r.threads) for r in asked]
    check_exportable(library, emitted, pack)
    spec = NetworkSpec(model, **those(NetworkArguments, arguments))
    runs = [(open_networks([spec], lookup.request), lookup.request) for lookup in lookups]
    for lookup in lookups:
        lookup.warn_of_predictions()
    talk = Talk(quiet, json=as_json)
    write_library(runs, library, pack, talk).tell(talk, lookups[0])
