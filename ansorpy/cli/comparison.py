"""The comparison behind ``verify``: run a network with two engines and compare the outputs."""

from __future__ import annotations

from pathlib import Path

import onnx

from ansorpy.cli.lookup import Lookup
from ansorpy.cli.models import given_shapes, open_model
from ansorpy.config import default_threads
from ansorpy.errors import UsageError
from ansorpy.report.engines.protocol import open_engine
from ansorpy.report.inputs import input_specs, random_feeds, read_model
from ansorpy.report.onnx_edit import softmax_inputs_as_outputs
from ansorpy.report.randomize import random_weights
from ansorpy.report.verify import Verification, compare_outputs

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
    _save(extended, reference)
    given = lookup.arguments
    specs = input_specs(extended, given_shapes(lookup), given.get("dims") or {})
    feeds = random_feeds(specs, input_seed)
    threads = given.get("threads")
    engine = open_engine(against, str(reference), feeds, threads or default_threads())
    engine.run()
    theirs = {name: value.copy() for name, value in engine.outputs().items()}
    ours = open_model(lookup, instead=reference)
    names, fed = [output.name for output in ours.get_outputs()], ours.with_room(feeds)
    results = dict(zip(names, ours.run(names, fed, threads=threads), strict=True))
    return compare_outputs(lookup.model.name, against, results, theirs, softmaxes, tolerance)


def _save(model: onnx.ModelProto, path: Path) -> None:
    """Write *model*, with its weights in a second file if one cannot hold everything."""
    large = model.ByteSize() >= 1 << 31
    onnx.save(model, path, save_as_external_data=large)
