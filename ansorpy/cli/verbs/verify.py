"""``ansorpy verify``: compare outputs with those of another engine, or prove memory safety."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from ansorpy.api.arguments import HostLookupArguments
from ansorpy.api.plugins import load_plugins
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import AsJson, ModelOption, Plugins, Seed, refuse_unused
from ansorpy.evaluation.tables import show

if TYPE_CHECKING:
    from ansorpy.api.evaluate.lookup import Lookup

__all__ = ["verify"]


@with_options
def verify(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A library or an .onnx file.")],
    original: ModelOption = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="ENGINE",
            help="Engine to compare with: onnxruntime, which is the default, or reference.",
        ),
    ] = None,
    *,
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
    seed: Seed = None,
    as_json: AsJson = False,
    plugin: Plugins = None,
    **arguments: Unpack[HostLookupArguments],
) -> None:
    """Compare a network's outputs with onnxruntime's or the reference evaluator's.

    With --static, prove instead that its programs stay in their buffers, have no data races and
    read nothing before it is written.
    """
    from ansorpy.api.evaluate.lookup import Lookup
    from ansorpy.api.evaluate.models import with_own_sizes
    from ansorpy.api.evaluate.verify import verify as verified
    from ansorpy.cli.status_line import StatusLine

    if static:
        refuse_unused(
            "verify --static",
            {"--against": against, "--tolerance": tolerance != 2e-5, "--seed": seed is not None,
             "--random-weights": random_weights is not None},
        )  # fmt: skip
        load_plugins(plugin or ())
        lookup = Lookup(model, plugins=plugin or (), **arguments)
        _prove(with_own_sizes(lookup, original), as_json=as_json)
        return
    with StatusLine(quiet=not sys.stderr.isatty()) as status:
        result = verified(
            model, original, against=against or "onnxruntime", tolerance=tolerance,
            random_weights=random_weights, seed=seed, plugins=plugin or (), progress=status,
            **arguments,
        )  # fmt: skip
    print(json.dumps(result.to_dict(), indent=2)) if as_json else show(result.table())
    result.demand()


def _prove(lookup: Lookup, *, as_json: bool) -> None:
    """Print what is proved, refuted and undecided.

    Raises:
        VerificationFailed: Something is refuted.
    """
    from ansorpy.cli.proving import verify_static

    result = verify_static(lookup)
    if as_json:
        print(json.dumps(result.to_dict(), indent=2))
    else:
        show(result.table())
        print("\n".join(result.lines()))
    result.demand()
