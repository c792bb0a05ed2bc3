"""Reading a network: its file, the shapes of its inputs, and its graph."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from onnx import ModelProto

from ansorpy.frontend.onnx.definitions import with_definitions
from ansorpy.frontend.onnx.dim_texts import dim_flags
from ansorpy.frontend.onnx.formal import mended
from ansorpy.frontend.onnx.importer import Importer, Solved
from ansorpy.frontend.onnx.ml.maps import without_maps
from ansorpy.frontend.onnx.nodes import all_nodes
from ansorpy.frontend.onnx.pinned import with_constants
from ansorpy.frontend.onnx.reader import check, demand_own_texts, read, upgraded
from ansorpy.frontend.onnx.registry import has_importer, is_known
from ansorpy.frontend.onnx.sequence_inputs import with_tensors
from ansorpy.frontend.onnx.shapes import InputShapes, input_shapes
from ansorpy.graph.ir import Graph
from ansorpy.ir.symbols import Dim
from ansorpy.size_bounds import AnyBound, known_bounds
from ansorpy.size_ranges import AnySize, SizeRange

__all__ = ["Imported", "load", "load_with_ranges", "runnable_shapes"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Imported:
    """The graph of a network, and the ranges of the dimensions of its inputs."""

    graph: Graph
    ranges: Mapping[Dim, SizeRange]


def load(
    source: str | Path | ModelProto,
    shapes: Mapping[str, Sequence[AnySize]] | None = None,
    dims: Mapping[str, AnySize] | None = None,
    constants: Mapping[str, ArrayLike] | None = None,
    bounds: Mapping[str, AnyBound] | None = None,
) -> Graph:
    """The network graph of an ONNX model (a path or a loaded model).

    Args:
        shapes: Full shapes by input name, for inputs with dynamic dimensions.
        dims: Sizes by name of a dynamic dimension: ``{"batch": 1, "seq": (1, 512)}``.
        constants: Values of inputs that are known, by name: they are no inputs any more.
        bounds: What sizes that depend on data are at most, by name of a tensor that has a size, or
            of the result of a Range or Loop that has as many rows: ``{"trip": 100}``.

    Raises:
        ForeignFile: The source is not an ONNX model, or onnx's checker rejects it.
        UsageError: A size is wrong, or an input or dimension name is unknown.
        UnsupportedModel: Some nodes cannot be compiled; its table lists all of them.
    """
    return load_with_ranges(source, shapes, dims, constants, bounds).graph


def load_with_ranges(
    source: str | Path | ModelProto,
    shapes: Mapping[str, Sequence[AnySize]] | None = None,
    dims: Mapping[str, AnySize] | None = None,
    constants: Mapping[str, ArrayLike] | None = None,
    bounds: Mapping[str, AnyBound] | None = None,
) -> Imported:
    """As :func:`load`, with the ranges of the dimensions.

    Those that are assumed, because nobody states them, are logged with the flags that change them.

    Raises:
        ForeignFile, UsageError, UnsupportedModel: As :func:`load`.
    """
    graph, inputs, equal = _imported(source, shapes, dims, constants, bounds)
    _log_assumed(inputs, equal)
    return Imported(graph, inputs.ranges)


def runnable_shapes(
    source: str | Path | ModelProto,
    shapes: Mapping[str, Sequence[AnySize]] | None = None,
    dims: Mapping[str, AnySize] | None = None,
    bounds: Mapping[str, AnyBound] | None = None,
) -> InputShapes:
    """The shapes of the inputs with which the model's operators can run.

    Differs from :func:`~ansorpy.frontend.onnx.shapes.input_shapes` where ranges are assumed.

    Raises:
        ForeignFile, UsageError, UnsupportedModel: As :func:`load`.
    """
    return _imported(source, shapes, dims, None, bounds)[1]


def _imported(
    source: str | Path | ModelProto,
    shapes: Mapping[str, Sequence[AnySize]] | None,
    dims: Mapping[str, AnySize] | None,
    constants: Mapping[str, ArrayLike] | None,
    bounds: Mapping[str, AnyBound] | None,
) -> tuple[Graph, InputShapes, list[str]]:
    """The graph, its inputs, and which dimensions its operators need to be others."""
    limits = known_bounds(bounds)
    found = with_constants(read(source), constants or {})
    demand_own_texts(all_nodes(found.graph))
    model, shapes = with_tensors(mended(found), shapes)
    if all(map(is_known, all_nodes(model.graph))):
        check(model)
    model = upgraded(model)
    model = without_maps(model)
    unknown = [node for node in all_nodes(model.graph) if not has_importer(node)]
    model = with_definitions(model, unknown)
    inputs = input_shapes(model, shapes, dims)
    equal: list[str] = []
    while True:
        try:
            with np.errstate(all="ignore"):  # constants may become NaN or infinite, as in ONNX
                return Importer(model, inputs, limits).run(), inputs, equal
        except Solved as need:
            inputs = inputs.replaced(need.dim, need.extent)
            if need.dim.name != str(need.extent):  # otherwise, only its range has changed
                equal.append(f"{need.dim.name} = {need.extent}")


def _log_assumed(inputs: InputShapes, equal: Sequence[str]) -> None:
    """Say which ranges were assumed, and which dimensions follow from others."""
    flags = dim_flags({dim.name: inputs.ranges[dim] for dim in inputs.free})
    if flags:
        _LOG.warning("the model leaves sizes open; assuming %s", flags)
    if equal:
        _LOG.warning("the model's operators need %s", ", ".join(equal))
