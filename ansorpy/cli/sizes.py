"""Sizes of dimensions at which ``bench`` times a network."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

from ansorpy.errors import UsageError

if TYPE_CHECKING:
    from ansorpy.runtime.ports import Port

__all__ = ["listed_sizes", "points_of", "port_shapes"]


def listed_sizes(items: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """``{"seq": (1, 7, 64)}`` from ``seq=1,7,64``.

    Raises:
        UsageError: An item is not a name with sizes, or lists a size twice.
    """
    found = {}
    for item in items:
        name, _, sizes = item.rpartition("=")
        if not name or not re.fullmatch(r"\d+(,\d+)*", sizes):
            raise UsageError(
                f"{item!r} is not a dimension's sizes", hint="write batch=1 or seq=1,7,64"
            )
        found[name] = tuple(map(int, sizes.split(",")))
        if len(set(found[name])) < len(found[name]):
            raise UsageError(f"{item!r} lists a size twice")
    return found


def points_of(dims: Mapping[str, Sequence[int]]) -> list[dict[str, int]]:
    """Every combination of the sizes that *dims* lists; the last dimension changes first."""
    return [dict(zip(dims, sizes, strict=True)) for sizes in product(*dims.values())]


def port_shapes(ports: Iterable[Port], sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """The shape of each port where the dimensions have *sizes*, by name.

    Raises:
        UsageError: A dimension has no size, or one outside its range.
    """
    from ansorpy.ir.extents import dims_of
    from ansorpy.ir.sizes import at, fixed

    found = {}
    for port in ports:
        chosen = {}
        for dim in dims_of(port.shape):
            size = sizes.get(dim.name)
            if size is None or not dim.low <= size <= dim.high or size % dim.step:
                raise UsageError(
                    f"input {port.name!r} takes {'x'.join(map(str, port.shape))}, "
                    f"but {dim.name} is {'not given' if size is None else size}",
                    hint=f"give a size in {dim} with --dim {dim.name}=N",
                )
            chosen[dim] = size
        found[port.name] = tuple(fixed(at(extent, chosen)) for extent in port.shape)
    return found
