"""ONNX models and their inputs, as those see them who compare engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from ansorpy.errors import UsageError
from ansorpy.frontend.onnx import runnable_shapes
from ansorpy.frontend.onnx.reader import read_file
from ansorpy.frontend.onnx.shapes import InputShapes, input_shapes, network_inputs
from ansorpy.runtime.ports import Port
from ansorpy.size_bounds import AnyBound, known_bounds
from ansorpy.size_ranges import AnySize

__all__ = ["dimension_sizes", "input_specs", "read_model", "tensor_shapes"]


def read_model(path: str | Path) -> onnx.ModelProto:
    """Load the ONNX model in the file *path*, including external data.

    Raises:
        ForeignFile: The file does not exist, cannot be read, or is not an ONNX model.
    """
    return read_file(Path(path))


def tensor_shapes(
    model: onnx.ModelProto,
    shapes: Mapping[str, Sequence[AnySize]] | None = None,
    dims: Mapping[str, AnySize] | None = None,
    bounds: Mapping[str, AnyBound] | None = None,
) -> InputShapes:
    """The shapes of the inputs of *model*, with *shapes* and *dims* filled in.

    Raises:
        UsageError: A name is unknown, or a size is wrong or contradicts the model.
        UnsupportedModel: A range is needed, and the model cannot be imported.
    """
    found = input_shapes(model, shapes, dims)
    if found.assumed:  # operators may need dimensions to be equal
        found = runnable_shapes(model, shapes, dims, bounds)
    return found


def input_specs(
    model: onnx.ModelProto,
    shapes: Mapping[str, Sequence[AnySize]] | None = None,
    dims: Mapping[str, AnySize] | None = None,
    bounds: Mapping[str, AnyBound] | None = None,
) -> list[Port]:
    """The inputs a caller provides (not the initializers), with *shapes* and *dims* filled in.

    Where a dimension has a range, given or by default, it gets a usual size of that range.

    Raises:
        UsageError: A name is unknown, a size is wrong or contradicts the model, or an input is no
            tensor.
        UnsupportedModel: A range is needed, and the model cannot be imported.
    """
    usual = tensor_shapes(model, shapes, dims, bounds).usual
    held = known_bounds(bounds)
    return [Port(i.name, usual[i.name], _dtype(i), held.get(i.name)) for i in network_inputs(model)]


def _dtype(value: onnx.ValueInfoProto) -> np.dtype[np.generic]:
    kind = value.type.tensor_type.elem_type
    if not kind:
        raise UsageError(
            f"input {value.name!r} is not a tensor of a known type, so no engine can be given "
            "random values for it"
        )
    return np.dtype(helper.tensor_dtype_to_np_dtype(kind))


def dimension_sizes(
    model: onnx.ModelProto, shapes: Mapping[str, Sequence[AnySize]]
) -> dict[str, set[AnySize]]:
    """The sizes that the inputs' *shapes* give to each dimension that the model names."""
    found: dict[str, set[AnySize]] = {}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        for dim, size in zip(dims, shapes.get(value.name, ()), strict=False):
            if dim.dim_param:
                found.setdefault(dim.dim_param, set()).add(size)
    return found
