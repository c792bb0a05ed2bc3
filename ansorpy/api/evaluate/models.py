"""Open the model argument of ``run``, ``bench`` and ``verify``: a library or an ONNX file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ansorpy.api.assemble import model_of
from ansorpy.api.display.shown import shown
from ansorpy.api.evaluate.libraries import is_library, library_shapes, stated_sizes
from ansorpy.api.evaluate.lookup import Lookup
from ansorpy.api.networks import Finished, Networks, NetworkSpec, tune_networks
from ansorpy.errors import UsageError
from ansorpy.evaluation.inputs import port_bounds
from ansorpy.evaluation.onnx_edit import save
from ansorpy.evaluation.onnx_inputs import dimension_sizes, read_model
from ansorpy.frontend.onnx.pinned import with_constants
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.library.shared_library import read_library
from ansorpy.runtime.model import Model, load
from ansorpy.size_ranges import AnySize, shape_of

__all__ = [
    "finished_from", "from_records", "given_shapes", "onnx_beside", "open_model",
    "with_known_inputs", "with_own_sizes",
]  # fmt: skip


def onnx_beside(path: Path, model: Path | None) -> Path:
    """The ONNX file to compare with: *path* itself, or *model* if *path* is a library.

    Raises:
        UsageError: A library was given without ``--model``, or with that of another network.
    """
    if not is_library(path):
        return path
    if model is None:
        raise UsageError(
            f"{path} is a library; the comparison needs the network it was made from",
            hint="give the network with --model net.onnx; in Python as the second argument",
        )
    metadata, *_ = read_library(path)
    theirs = [port.name for port in read_model(model).graph.input]
    for port in metadata.input_ports:
        if port.name not in theirs:
            raise UsageError(
                f"{path} takes {port.name!r}, which is no input of {model}: it was made from "
                "another network",
                hint="give the file that it was compiled from",
            )
    return model


@contextmanager
def with_known_inputs(
    lookup: Lookup, original: Path | None
) -> Iterator[tuple[Lookup, Path | None]]:
    """*lookup* and *original* with a copy of the network in which the inputs of ``--const`` are
    constants, for all engines to read.

    Raises:
        UsageError: There is no such input, or it has another shape or type.
    """
    constants = lookup.arguments.get("constants")
    network = original if is_library(lookup.model) else lookup.model
    if not constants or network is None:
        yield lookup, original
        return
    with TemporaryDirectory(prefix="ansorpy-") as folder:
        copy = Path(folder, network.name)
        save(with_constants(read_model(network), constants), copy)
        ours = lookup.model if is_library(lookup.model) else copy
        yield lookup.replaced(ours, source=lookup, constants=None), original and copy


def given_shapes(lookup: Lookup) -> dict[str, tuple[AnySize, ...]]:
    """The input shapes for a comparison: those of the library, or those that the user gave.

    Raises:
        UsageError: A dimension of the library has no size, or what the user gave is no shape.
    """
    if is_library(lookup.model):
        return {**library_shapes(lookup.model, lookup.arguments)}
    return {n: shape_of(shape, n) for n, shape in (lookup.arguments.get("shapes") or {}).items()}


def with_own_sizes(lookup: Lookup, original: Path | None = None) -> Lookup:
    """*lookup*; if its model is a library, with sizes only of the dimensions that calls state, and
    the bounds that it was compiled for.

    Args:
        original: The ONNX file that the library was made from, which names its dimensions.

    Raises:
        UsageError: The user gave other sizes than the library has, or a name that is unknown.
    """
    if not is_library(lookup.model):
        return lookup
    given, named = lookup.arguments, dict[str, set[AnySize]]()
    if original is not None and (given.get("dims") or given.get("shapes")):
        named = dimension_sizes(read_model(original), given_shapes(lookup))
    dims = stated_sizes(lookup.model, given, named)
    bounds = port_bounds(read_library(lookup.model)[0].input_ports)
    return lookup.replaced(dims=dims, shapes=None, bounds=bounds)


def open_model(lookup: Lookup, instead: Path | None = None) -> Model:
    """Load the library, or compile the ONNX file from records, without tuning.

    Args:
        instead: A modified copy of the ONNX file, which is compiled in its place.
    """
    if is_library(lookup.model):
        return load(lookup.model)
    compiled = from_records(lookup if instead is None else lookup.replaced(instead))[1]
    lookup.warn_of_predictions()
    return compiled


def from_records(lookup: Lookup) -> tuple[Finished, CompiledModel]:
    """The ONNX file's programs and model, compiled from the records without tuning."""
    finished = finished_from(lookup)
    threads = lookup.request.threads
    return finished, model_of(finished.project, finished.chosen, threads)


def finished_from(lookup: Lookup) -> Finished:
    """The ONNX file's programs, chosen from the records without tuning."""
    with shown("auto") as told:
        networks = Networks([lookup.project], [NetworkSpec(lookup.model)])
        [finished] = tune_networks(networks, replace(lookup.request, listener=told))
    return finished
