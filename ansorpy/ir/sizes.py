"""Sizes of dimensions: extents where they are chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import floordiv
from typing import TypeAlias

from ansorpy.errors import UsageError
from ansorpy.ir.atoms import Monomial, product_ends
from ansorpy.ir.extents import Atom, Extent, dim_extent, extreme, least, prod_of
from ansorpy.ir.symbols import Dim, SizeOp

__all__ = ["Sizes", "at", "at_most", "fixed", "fixed_all", "refuse_dims"]

Sizes: TypeAlias = Mapping[Dim, Extent]
"""Sizes of dimensions; a dimension may be replaced by an expression of others, too."""


def at(extent: Extent, sizes: Sizes) -> Extent:
    """*extent* where the dimensions in *sizes* have these sizes."""
    if isinstance(extent, int):
        return extent
    if all(isinstance(sizes.get(dim), int) for dim in extent.dims):
        return _number_at(extent, sizes)
    total: Extent = 0
    for atoms, c in extent.terms:
        total = total + prod_of(_atom_at(atom, sizes) for atom in atoms) * c
    return total


def _number_at(extent: Extent, sizes: Sizes) -> int:
    """*extent* where all of its dimensions have a number as their size; calls of kernels ask."""
    if isinstance(extent, int):
        return extent
    total = 0
    for atoms, c in extent.terms:
        for atom in atoms:
            if isinstance(atom, Dim):
                c *= fixed(sizes[atom])
                continue
            a, b = _number_at(atom.a, sizes), _number_at(atom.b, sizes)
            c *= _NUMBERS[atom.op](a, b)
        total += c
    return total


_NUMBERS: Mapping[SizeOp, Callable[[int, int], int]] = {
    SizeOp.FLOORDIV: floordiv, SizeOp.MIN: min, SizeOp.MAX: max,
}  # fmt: skip


def at_most(extent: Extent, capacities: Sizes) -> Extent:
    """An upper bound of *extent* where each dimension in *capacities* is at most what this says.

    It depends on the other dimensions only, and is exact if *extent* grows with all of them.
    """
    return _ends(extent, capacities)[1]


def _ends(extent: Extent, capacities: Sizes) -> tuple[Extent, Extent]:
    """A lower and an upper bound."""
    if isinstance(extent, int):
        return extent, extent
    low: Extent = 0
    high: Extent = 0
    for atoms, c in extent.terms:
        ends = _product_ends([_atom_ends(atom, capacities) for atom in atoms], atoms)
        first, last = ends if c > 0 else ends[::-1]
        low, high = low + first * c, high + last * c
    return low, high


def _product_ends(
    ends: Sequence[tuple[Extent, Extent]], atoms: Monomial
) -> tuple[Extent, Extent]:  # fmt: skip
    if all(first == last for first, last in ends) or all(least(first) >= 0 for first, _ in ends):
        return prod_of(first for first, _ in ends), prod_of(last for _, last in ends)
    return ends[0] if len(ends) == 1 else product_ends(atoms)


def _atom_ends(atom: Atom, capacities: Sizes) -> tuple[Extent, Extent]:
    if isinstance(atom, Dim):
        if atom in capacities:
            return atom.low, capacities[atom]
        return dim_extent(atom), dim_extent(atom)
    (a, b), (c, d) = _ends(atom.a, capacities), _ends(atom.b, capacities)
    if atom.op is not SizeOp.FLOORDIV:
        return extreme(atom.op, a, c), extreme(atom.op, b, d)
    return (a // c, b // c) if c == d else atom.ends


def _atom_at(atom: Atom, sizes: Sizes) -> Extent:
    if isinstance(atom, Dim):
        return sizes[atom] if atom in sizes else dim_extent(atom)
    a, b = at(atom.a, sizes), at(atom.b, sizes)
    return a // b if atom.op is SizeOp.FLOORDIV else extreme(atom.op, a, b)


def fixed(extent: Extent) -> int:
    """*extent*, which must be a number.

    Raises:
        UsageError: It depends on a dimension whose size is not known here.
    """
    if isinstance(extent, int):
        return extent
    raise UsageError(f"the extent {extent} is not a number", hint=_hint(extent.dims))


def refuse_dims(dims: Sequence[Dim]) -> None:
    """Check that there are no *dims*; raises :class:`UsageError`, which names them."""
    if dims:
        names = ", ".join(dim.name for dim in dims)
        raise UsageError(f"the size of {names} is not chosen", hint=_hint(dims))


def _hint(dims: Sequence[Dim]) -> str:
    return f"choose sizes first, with dag_at or program_at: {', '.join(map(str, dims))}"


def fixed_all(extents: Iterable[Extent]) -> tuple[int, ...]:
    """*extents*, all of which must be numbers.

    Raises:
        UsageError: One depends on a dimension whose size is not known here.
    """
    return tuple(map(fixed, extents))
