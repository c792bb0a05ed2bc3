"""Sizes of dimensions: extents where they are chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import floordiv
from typing import TypeAlias

from ansorpy.errors import UsageError
from ansorpy.ir.extents import Atom, Extent, dim_extent, extreme, prod_of
from ansorpy.ir.symbols import Dim, SizeOp

__all__ = ["Sizes", "at", "fixed", "fixed_all", "refuse_dims"]

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
