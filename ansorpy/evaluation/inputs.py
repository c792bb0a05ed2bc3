"""Inputs of a model: names, shapes and types, and seeded random values for them."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import helper

from ansorpy.errors import ForeignFile, UsageError
from ansorpy.frontend.onnx import runnable_shapes
from ansorpy.frontend.onnx.shapes import input_shapes, network_inputs
from ansorpy.ir.extents import dims_of
from ansorpy.ir.sizes import at, fixed_all
from ansorpy.ir.symbols import Dim
from ansorpy.runtime.ports import Port
from ansorpy.size_bounds import AnyBound, Bound, known_bounds
from ansorpy.size_ranges import AnySize, SizeRange

__all__ = [
    "InputSpec",
    "dimension_sizes",
    "input_specs",
    "port_shapes",
    "random_feeds",
    "random_value",
    "read_model",
]


@dataclass(frozen=True)
class InputSpec:
    """One input of a model, with every dimension known, and the bounds of its elements."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    bound: Bound | None = None


def read_model(path: str | Path) -> onnx.ModelProto:
    """Load the ONNX model in the file *path*, including external data.

    Raises:
        ForeignFile: The file does not exist, cannot be read, or is not an ONNX model.
    """
    try:
        model = onnx.load(str(path))
    except OSError as error:
        raise ForeignFile(f"cannot read {path}: {error.strerror or error}") from None
    except (DecodeError, onnx.checker.ValidationError) as error:
        raise ForeignFile(f"{path} is not an ONNX model: {error}") from None
    if not model.HasField("graph") or not model.graph.node:
        raise ForeignFile(f"{path} is not an ONNX model: it has no graph")
    return model


def input_specs(
    model: onnx.ModelProto,
    shapes: Mapping[str, Sequence[AnySize]] | None = None,
    dims: Mapping[str, AnySize] | None = None,
    bounds: Mapping[str, AnyBound] | None = None,
) -> list[InputSpec]:
    """The inputs a caller provides (not the initializers), with *shapes* and *dims* filled in.

    Where a dimension has a range, given or by default, it gets a usual size of that range.

    Raises:
        UsageError: A name is unknown, or a size is wrong or contradicts the model.
        UnsupportedModel: A range is needed, and the model cannot be imported.
    """
    found = input_shapes(model, shapes, dims)
    if found.assumed:  # operators may need dimensions to be equal
        found = runnable_shapes(model, shapes, dims, bounds)
    usual = found.usual
    held = known_bounds(bounds)
    return [
        InputSpec(i.name, usual[i.name], _dtype(i), held.get(i.name)) for i in network_inputs(model)
    ]


def _dtype(value: onnx.ValueInfoProto) -> np.dtype[np.generic]:
    return np.dtype(helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))


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


def port_shapes(ports: Iterable[Port], sizes: Mapping[str, AnySize]) -> dict[str, tuple[int, ...]]:
    """The shape of each of a program's *ports* where its dimensions have *sizes*, by name.

    Raises:
        UsageError: A dimension has no size, or one outside its range.
    """
    found = {}
    for port in ports:
        chosen: dict[Dim, int] = {}
        for dim in dims_of(port.shape):
            size = sizes.get(dim.name)
            if not isinstance(size, int) or size not in SizeRange(dim.low, dim.high, dim.step):
                raise UsageError(
                    f"input {port.name!r} takes {'x'.join(map(str, port.shape))}, "
                    f"but {dim.name} is {'not given' if size is None else size}",
                    hint=f"give a size in {dim} with --dim {dim.name}=N",
                )
            chosen[dim] = size
        found[port.name] = fixed_all(at(extent, chosen) for extent in port.shape)
    return found


def random_feeds(specs: Sequence[InputSpec], seed: int) -> dict[str, np.ndarray]:
    """One value per input; the same *seed* and name give the same value in every process."""
    return {s.name: random_value(s.shape, s.dtype, seed, s.name, s.bound) for s in specs}


def random_value(
    shape: tuple[int, ...],
    dtype: np.dtype[np.generic],
    seed: int,
    name: str = "",
    bound: Bound | None = None,
) -> np.ndarray:
    """Standard-normal floats; integers and booleans are 0 or 1, valid indices of most axes.

    Elements with a *bound* are in it.
    """
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    if bound is not None:
        low, high = np.asarray(bound).T
        return rng.integers(low, high + 1, shape or None).astype(dtype)
    if np.issubdtype(dtype, np.integer) or dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.standard_normal(shape, dtype=np.float32).astype(dtype)
