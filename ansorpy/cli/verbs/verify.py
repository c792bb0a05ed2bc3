"""``ansorpy verify``: compare outputs with those of another engine, or prove memory safety."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from ansorpy.api.arguments import HostLookupArguments
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import AsJson, ModelOption, Plugins, Seed

if TYPE_CHECKING:
    from ansorpy.cli.lookup import Lookup
    from ansorpy.evaluation.verify import Verification

__all__ = ["verify"]


@with_options
def verify(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A library or an .onnx file.")],
    original: ModelOption = None,
    against: Annotated[str, typer.Option(help="onnxruntime or reference.")] = "onnxruntime",
    tolerance: Annotated[
        float, typer.Option(min=0.0, help="Error allowed, relative to the largest output.")
    ] = 2e-5,
    random_weights: Annotated[
        int | None,
        typer.Option(min=0, metavar="SEED", help="Draw the network's weights at random first."),
    ] = None,
    static: Annotated[
        bool,
        typer.Option(
            "--static", help="Run nothing: prove that the programs access memory as they should."
        ),
    ] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
    plugin: Plugins = None,
    **arguments: Unpack[HostLookupArguments],
) -> None:
    """Compare a network's outputs with onnxruntime's or the reference evaluator's.

    With --static, prove instead that its programs stay in their buffers, have no data races and
    read nothing before it is written.
    """
    from ansorpy.api.parts import load_plugins
    from ansorpy.cli.comparison import verify_model
    from ansorpy.cli.lookup import Lookup
    from ansorpy.cli.models import is_library, onnx_beside, with_known_inputs, with_own_sizes
    from ansorpy.errors import UsageError
    from ansorpy.evaluation.tables import show

    load_plugins(plugin or ())
    lookup = Lookup(model, **arguments)
    if static:
        _prove(with_own_sizes(lookup, original), as_json=as_json)
        return
    if random_weights is not None and is_library(model):
        raise UsageError(
            "the weights of a library are fixed", hint="give the .onnx file with --random-weights"
        )
    with (
        TemporaryDirectory(prefix="ansorpy-") as folder,
        with_known_inputs(lookup, original) as (ours, network),
    ):
        result: Verification = verify_model(
            with_own_sizes(ours, network),
            onnx_beside(ours.model, network),
            Path(folder),
            against=against,
            tolerance=tolerance,
            weights_seed=random_weights,
            input_seed=seed,
        )
    print(json.dumps(result.to_dict(), indent=2)) if as_json else show(result.table())
    result.demand()


def _prove(lookup: Lookup, *, as_json: bool) -> None:
    """Print what is proved, refuted and undecided.

    Raises:
        VerificationFailed: Something is refuted.
    """
    from ansorpy.cli.proving import verify_static
    from ansorpy.evaluation.tables import show

    result = verify_static(lookup)
    if as_json:
        print(json.dumps(result.to_dict(), indent=2))
    else:
        show(result.table())
        print("\n".join(result.lines()))
    result.demand()
