"""Shapes with dimensions in a library's metadata: written, and read from files of strangers.

An extent is a number or ``["sum", [coefficient, atom ...] ...]``.  An atom is the name of a
dimension, or ``["//" | "min" | "max", extent, extent]``.
"""

from __future__ import annotations

from collections.abc import Mapping

from ansorpy.ir.extents import AnyExtent, Atom, Extent, Symbolic, dim_extent, extreme, prod_of
from ansorpy.ir.symbols import Dim, SizeOp

__all__ = ["Data", "extent_data", "extent_of"]

Data = int | str | list["Data"]
"""JSON data."""

_MOST_PARTS = 256
"""Numbers, names and operations of one extent; a network's have a dozen at most."""
_MOST = 1 << 62


def extent_data(extent: AnyExtent) -> Data:
    """*extent* as JSON data; its dimensions are named only."""
    if isinstance(extent, int):
        return extent
    return ["sum", *([c, *map(_atom_data, atoms)] for atoms, c in extent.terms)]


def _atom_data(atom: Atom) -> Data:
    if isinstance(atom, Dim):
        return atom.name
    return [atom.op.value, extent_data(atom.a), extent_data(atom.b)]


def extent_of(data: object, dims: Mapping[str, Dim]) -> Extent:
    """The extent that :func:`extent_data` wrote.

    Raises:
        ValueError: *data* is no such description, or is larger than any real one.
    """
    if _parts(data) > _MOST_PARTS:
        raise ValueError("an extent with too many parts")
    return _extent(data, dims)


def _parts(data: object) -> int:
    """The numbers, names and lists of *data*; counts no further than is allowed."""
    count, rest = 0, [data]
    while rest and count <= _MOST_PARTS:
        part = rest.pop()
        count += 1
        if isinstance(part, list):
            rest += part
    return count


def _extent(data: object, dims: Mapping[str, Dim]) -> Extent:
    match data:
        case int() if type(data) is int and abs(data) <= _MOST:
            return data
        case ["sum", *terms]:
            total: Extent = 0
            for term in terms:
                match term:
                    case [int() as c, *atoms] if type(c) is int and abs(c) <= _MOST:
                        total = total + prod_of(_atom(atom, dims) for atom in atoms) * c
                        continue
                raise ValueError(f"{term!r:.40} is not a term of an extent")
            return total
    raise ValueError(f"{data!r:.40} is not an extent")


def _atom(data: object, dims: Mapping[str, Dim]) -> Extent:
    """A dimension or an operation, which must not turn out to be a sum: products of sums grow."""
    found: Extent | None = None
    match data:
        case str() if data in dims:
            return dim_extent(dims[data])
        case ["//", a, int() as b] if type(b) is int and b > 0:
            found = _extent(a, dims) // b
        case ["//", a, b]:
            divisor = _extent(b, dims)
            if isinstance(divisor, Symbolic):
                found = _extent(a, dims) // divisor
        case [("min" | "max") as op, a, b]:
            found = extreme(SizeOp(op), _extent(a, dims), _extent(b, dims))
    if isinstance(found, Symbolic) and len(found.terms) == 1:
        return found
    raise ValueError(f"{data!r:.40} is not a part of an extent")
