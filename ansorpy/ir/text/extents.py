"""Extents as plain JSON data and back.

A number is itself, a sum ``["sum", [coefficient, atom ...] ...]``; an atom is
``["dim", name, low, high, step]`` or ``[operation, a, b]``.
"""

from __future__ import annotations

from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import Atom, Extent, dim_extent, extreme, prod_of
from ansorpy.ir.symbols import Dim, SizeOp

__all__ = ["Data", "dim_data", "dim_of", "extent_data", "extent_of"]

Data = int | list[object]


def extent_data(extent: Extent) -> Data:
    """*extent* as JSON-serializable data."""
    if isinstance(extent, int):
        return extent
    return ["sum", *([c, *map(_atom_data, atoms)] for atoms, c in extent.terms)]


def _atom_data(atom: Atom) -> Data:
    if isinstance(atom, Dim):
        return dim_data(atom)
    return [atom.op.value, extent_data(atom.a), extent_data(atom.b)]


def dim_data(dim: Dim) -> list[object]:
    """*dim* as JSON-serializable data."""
    return ["dim", dim.name, dim.low, dim.high, dim.step]


def extent_of(data: object) -> Extent:
    """The extent that :func:`extent_data` wrote.

    Raises:
        ValueError: *data* is no such description.
        UsageError: It names an impossible dimension.
    """
    match data:
        case int() if type(data) is int and DType.INT64.holds(data):
            return data
        case ["sum", *terms]:
            total: Extent = 0
            for term in terms:
                total = total + _term_of(term)
            return total
    raise ValueError(f"{data!r:.40} is not an extent")


def _term_of(data: object) -> Extent:
    if not isinstance(data, list) or not data:
        raise ValueError(f"{data!r:.40} is not a term of an extent")
    return prod_of([extent_of(data[0]), *map(_atom_of, data[1:])])


def _atom_of(data: object) -> Extent:
    match data:
        case ["dim", *_]:
            return dim_extent(dim_of(data))
        case ["//", a, b]:
            divisor = extent_of(b)
            if divisor == 0:
                raise ValueError("an extent is divided by 0")
            return extent_of(a) // divisor
        case [("min" | "max") as op, a, b]:
            return extreme(SizeOp(op), extent_of(a), extent_of(b))
    raise ValueError(f"{data!r:.40} is not a part of an extent")


def dim_of(data: object) -> Dim:
    """The dimension that :func:`dim_data` wrote.

    Raises:
        ValueError: *data* is no such description.
        UsageError: The range is impossible.
    """
    match data:
        case ["dim", str() as name, int() as low, int() as high, int() as step]:
            if all(type(n) is int and DType.INT64.holds(n) for n in (low, high, step)):
                return Dim(name, low, high, step)
    raise ValueError(f"{data!r:.40} is not a dimension")
