"""``ansorpy run``: run a library (or an ONNX file) once on given or random inputs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from ansorpy.api.arguments import HostLookupArguments
from ansorpy.api.plugins import load_plugins
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import AsJson, Plugins
from ansorpy.evaluation.tables import show
from ansorpy.writable import demand_writable

if TYPE_CHECKING:
    from ansorpy.runtime.model import Model

__all__ = ["run"]


@with_options
def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A library or an .onnx file.")],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME=FILE", help="NAME=x.npy, x.npz or random[:seed]."),
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write the outputs to this .npz.")] = None,
    *,
    as_json: AsJson = False,
    plugin: Plugins = None,
    **arguments: Unpack[HostLookupArguments],
) -> None:
    """Run a compiled network once; inputs that are not given are random."""
    from ansorpy.api.evaluate.libraries import is_library, stated_sizes
    from ansorpy.cli.files import feeds, save_arrays
    from ansorpy.evaluation.outputs import outputs_json, outputs_table
    from ansorpy.runtime.model import load

    load_plugins(plugin or ())
    if save is not None:
        demand_writable(save, reads=[model])
    if is_library(model):
        sizes, opened = stated_sizes(model, arguments), load(model)
    else:
        sizes, opened = arguments.get("dims") or {}, _compiled(model, plugin or (), arguments)
    threads = arguments.get("threads")
    fed = feeds(opened.get_inputs(), inputs or (), sizes)
    names = [output.name for output in opened.get_outputs()]
    fed = opened.with_room(fed)
    results = dict(zip(names, opened.run(names, fed, threads=threads), strict=True))
    if save is not None:
        save_arrays(save, results)
    if as_json:
        print(json.dumps(outputs_json(results), indent=2))
    else:
        show(outputs_table(results))


def _compiled(
    network: Path, plugins: Sequence[Path], arguments: HostLookupArguments
) -> Model:  # fmt: skip
    """The model of an ONNX file, for which the compiler is loaded."""
    from ansorpy.api.evaluate.lookup import Lookup
    from ansorpy.api.evaluate.models import open_model

    return open_model(Lookup(network, plugins=plugins, **arguments))
