"""Extents as plain JSON data and back, for files of strangers, too.

A number is itself, a sum ``["sum", [coefficient, atom ...] ...]``.  An atom is a dimension or
``["//" | "min" | "max", extent, extent]``.  A dimension is ``["dim", name, low, high, step]``,
unless the caller has another form for it, such as its name in a list of all dimensions.
"""

from __future__ import annotations

from collections.abc import Callable

from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import Atom, Extent, Symbolic, dim_extent, extreme, prod_of
from ansorpy.ir.symbols import Dim, SizeOp

__all__ = ["Data", "dim_data", "dim_of", "extent_data", "extent_of"]

Data = int | list[object]
"""JSON data of an extent."""

_MOST_PARTS = 256
"""Numbers, names and operations of one extent; a network's have a dozen at most."""


def dim_data(dim: Dim) -> list[object]:
    """*dim* as JSON-serializable data."""
    return ["dim", dim.name, dim.low, dim.high, dim.step]


def extent_data(extent: Extent, of_dim: Callable[[Dim], object] = dim_data) -> Data:
    """*extent* as JSON-serializable data; *of_dim* writes its dimensions."""
    if isinstance(extent, int):
        return extent
    return ["sum", *([c, *(_atom_data(a, of_dim) for a in atoms)] for atoms, c in extent.terms)]


def _atom_data(atom: Atom, of_dim: Callable[[Dim], object]) -> object:
    if isinstance(atom, Dim):
        return of_dim(atom)
    return [atom.op.value, extent_data(atom.a, of_dim), extent_data(atom.b, of_dim)]


def dim_of(data: object) -> Dim:
    """The dimension that :func:`dim_data` wrote.

    Raises:
        ValueError: *data* is no such description.
        UsageError: The range is impossible.
    """
    match data:
        case ["dim", str() as name, int() as low, int() as high, int() as step]:
            if all(map(_is_number, (low, high, step))):
                return Dim(name, low, high, step)
    raise ValueError(f"{data!r:.40} is not a part of an extent")


def extent_of(data: object, dim: Callable[[object], Dim] = dim_of) -> Extent:
    """The extent that :func:`extent_data` wrote; *dim* reads its dimensions.

    Raises:
        ValueError: *data* is no such description, or is larger than any real one.
        UsageError: It has an impossible dimension.
    """
    if _parts(data) > _MOST_PARTS:
        raise ValueError("an extent with too many parts")
    return _extent(data, dim)


def _parts(data: object) -> int:
    """The numbers, names and lists of *data*; counts no further than is allowed."""
    count, rest = 0, [data]
    while rest and count <= _MOST_PARTS:
        part = rest.pop()
        count += 1
        if isinstance(part, list):
            rest += part
    return count


def _is_number(data: object) -> bool:
    return type(data) is int and DType.INT64.holds(data)


def _extent(data: object, dim: Callable[[object], Dim]) -> Extent:
    match data:
        case int() if _is_number(data):
            return data
        case ["sum", *terms]:
            total: Extent = 0
            for term in terms:
                match term:
                    case [int() as c, *atoms] if _is_number(c):
                        total = total + prod_of(_atom(atom, dim) for atom in atoms) * c
                        continue
                raise ValueError(f"{term!r:.40} is not a term of an extent")
            return total
    raise ValueError(f"{data!r:.40} is not an extent")


def _atom(data: object, dim: Callable[[object], Dim]) -> Extent:
    """A dimension or an operation, which must not turn out to be a sum: products of sums grow."""
    match data:
        case ["//", a, b]:
            divisor = _extent(b, dim)
            made = None if isinstance(divisor, int) and divisor < 1 else _extent(a, dim) // divisor
        case [("min" | "max") as op, a, b]:
            made = extreme(SizeOp(op), _extent(a, dim), _extent(b, dim))
        case _:
            made = dim_extent(dim(data))
    if isinstance(made, Symbolic) and len(made.terms) == 1:
        return made
    raise ValueError(f"{data!r:.40} is not a part of an extent")
