"""Sizes of dimensions at which ``bench`` times a network."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from ansorpy.api.evaluate.libraries import is_library
from ansorpy.api.evaluate.lookup import Lookup
from ansorpy.api.evaluate.models import with_own_sizes
from ansorpy.evaluation.inputs import port_shapes
from ansorpy.evaluation.onnx_inputs import input_specs, read_model
from ansorpy.runtime.library.shared_library import read_library
from ansorpy.size_ranges import AnySize, SizeRange, size_of

if TYPE_CHECKING:
    from ansorpy.evaluation.engines.protocol import Shapes

__all__ = ["points_of", "timed_sizes"]


def points_of(dims: Mapping[str, AnySize]) -> list[dict[str, int]]:
    """Every combination of sizes of *dims*; the last dimension changes first.

    Of a list, these are all sizes; of another range, its ends and a usual one between them.
    """
    sizes = [_some(size_of(size, name)) for name, size in dims.items()]
    return [dict(zip(dims, point, strict=True)) for point in product(*sizes)]


def _some(size: int | SizeRange) -> list[int]:
    if isinstance(size, int):
        return [size]
    if size.calls:
        return [number for number, _ in size.calls]
    return sorted({size.low, size.usual, size.high})


def timed_sizes(
    lookup: Lookup, original: Path | None
) -> tuple[Lookup, list[dict[str, int]], list[Shapes]]:
    """The model to open, the sizes at which it is timed, and the shapes of all inputs at each.

    Raises:
        UsageError: The model does not run one of the sizes.
    """
    dims = lookup.arguments.get("dims") or {}
    points = points_of(dims)
    if not is_library(lookup.model):
        model, shapes = read_model(lookup.model), lookup.arguments.get("shapes")
        bounds = lookup.arguments.get("bounds")
        specs = [input_specs(model, shapes, {**dims, **point}, bounds) for point in points]
        return lookup, points, [{spec.name: spec.shape for spec in each} for each in specs]
    opened = [with_own_sizes(lookup.replaced(dims=point), original) for point in points]
    ports = read_library(lookup.model)[0].input_ports
    return opened[0], points, [port_shapes(ports, point) for point in points]
