"""Inputs of a program: names, shapes and types, and seeded random values for them."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from shlex import quote

import numpy as np

from ansorpy.errors import UsageError
from ansorpy.ir.extents import dims_of
from ansorpy.ir.sizes import at, fixed_all
from ansorpy.ir.symbols import Dim
from ansorpy.runtime.ports import Port
from ansorpy.size_bounds import Bound
from ansorpy.size_ranges import AnySize, SizeRange, size_of

__all__ = ["port_bounds", "port_shapes", "random_feeds", "random_value"]


def port_shapes(ports: Iterable[Port], sizes: Mapping[str, AnySize]) -> dict[str, tuple[int, ...]]:
    """The shape of each of a program's *ports* where its dimensions have *sizes*, by name.

    Raises:
        UsageError: A dimension has no size, one outside its range, or several.
    """
    found = {}
    for port in ports:
        chosen: dict[Dim, int] = {}
        for dim in dims_of(port.shape):
            size = size_of(sizes[dim.name], dim.name) if dim.name in sizes else None
            if not isinstance(size, int) or size not in SizeRange(dim.low, dim.high, dim.step):
                raise UsageError(
                    f"input {port.name!r} takes {'x'.join(map(str, port.shape))}, "
                    f"but {dim.name} is {'not given' if size is None else size}",
                    hint=f"give a size in {dim} with --dim {quote(f'{dim.name}=N')} "
                    "(dims= in Python)",
                )
            chosen[dim] = size
        found[port.name] = fixed_all(at(extent, chosen) for extent in port.shape)
    return found


def port_bounds(ports: Iterable[Port]) -> dict[str, Bound]:
    """The bounds of those of a program's *ports* that have some."""
    return {port.name: port.bound for port in ports if port.bound is not None}


def random_feeds(ports: Iterable[Port], seed: int) -> dict[str, np.ndarray]:
    """A value within its bounds for each of *ports*, whose shapes are numbers.

    The same *seed* and name give the same value in every process.
    """
    return {p.name: random_value(fixed_all(p.shape), p.dtype, seed, p.name, p.bound) for p in ports}


def random_value(
    shape: tuple[int, ...],
    dtype: np.dtype[np.generic],
    seed: int,
    name: str = "",
    bound: Bound | None = None,
) -> np.ndarray:
    """Standard-normal floats; integers and booleans are 0 or 1, valid indices of most axes.

    Elements with a *bound* are in it; floats with one are factors of sizes, which are not 0.
    """
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    if bound is not None:
        low, high = np.asarray(bound).T
        if np.issubdtype(dtype, np.floating):
            low = np.maximum(low, 1)
        drawn = rng.integers(low, high, shape or None, endpoint=True)
        return drawn.astype(dtype).reshape(shape)
    if np.issubdtype(dtype, np.integer) or dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.standard_normal(shape, dtype=np.float32).astype(dtype)
