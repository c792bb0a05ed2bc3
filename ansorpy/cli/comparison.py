"""The comparison behind ``verify``: run a network with two engines and compare the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ansorpy.cli.lookup import Lookup
from ansorpy.cli.models import given_shapes, is_library, open_model
from ansorpy.config import default_threads
from ansorpy.constants import constant_flags
from ansorpy.errors import UsageError
from ansorpy.evaluation.engines.protocol import open_engine
from ansorpy.evaluation.inputs import input_specs, random_feeds, read_model
from ansorpy.evaluation.onnx_edit import save, softmax_inputs_as_outputs
from ansorpy.evaluation.randomize import random_weights
from ansorpy.evaluation.verify import Verification, compare_outputs
from ansorpy.runtime.library.shared_library import read_library

__all__ = ["verify_model"]


def verify_model(
    lookup: Lookup,
    original: Path,
    folder: Path,
    *,
    against: str,
    tolerance: float,
    weights_seed: int | None,
    input_seed: int,
) -> Verification:
    """Compare the model of *lookup* (a library, or *original* itself) with the engine *against*.

    The network that both engines read is written to *folder*: with random weights drawn with
    *weights_seed*, if given, and with the inputs of its final softmaxes as additional outputs.
    """
    if against not in ("onnxruntime", "reference"):
        raise UsageError(
            f"cannot verify against {against!r}", hint="choose onnxruntime or reference"
        )
    model = read_model(original)
    if weights_seed is not None:
        model = random_weights(model, weights_seed)
    extended, softmaxes = softmax_inputs_as_outputs(model)
    reference = folder / original.name
    save(extended, reference)
    given = lookup.arguments
    specs = input_specs(
        extended, given_shapes(lookup), given.get("dims") or {}, given.get("bounds")
    )
    _demand_inputs(lookup.model, [spec.name for spec in specs])
    feeds = random_feeds(specs, input_seed)
    threads = given.get("threads")
    engine = open_engine(against, str(reference), feeds, threads or default_threads())
    engine.run()
    theirs = {name: value.copy() for name, value in engine.outputs().items()}
    ours = open_model(lookup, instead=reference)
    names, fed = [output.name for output in ours.get_outputs()], ours.with_room(feeds)
    results = dict(zip(names, ours.run(names, fed, threads=threads), strict=True))
    return compare_outputs(lookup.model.name, against, results, theirs, softmaxes, tolerance)


def _demand_inputs(path: Path, names: Sequence[str]) -> None:
    """Raise :class:`UsageError` if the library *path* lacks some of the inputs *names*."""
    if is_library(path):
        own = [port.name for port in read_library(path)[0].input_ports]
        missing = [name for name in names if name not in own]
        if missing:
            raise UsageError(
                f"the library {path} has no input {missing[0]!r}, as the network has",
                hint=f"give the values that it was compiled with: {constant_flags(missing)}",
            )
