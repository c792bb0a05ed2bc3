"""Dimensions that must be equal: exporters give the same size several names.

A mask's ``total`` is ``past + seq``, and the batches of two inputs are one.  That follows from the
operators that take values with these extents.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest

from ansorpy.graph.ops import Concat, Elementwise, Expand, MatMul, Op, Shape
from ansorpy.ir.extents import Atom, Extent, Form, Symbolic, dim_extent, dims_of
from ansorpy.ir.symbols import Dim, SizeOp

__all__ = ["Equation", "solved", "unequal"]

Equation = tuple[Extent, Extent]
"""Two extents that an operator needs to be equal."""


def unequal(op: Op, shapes: Sequence[Shape]) -> Equation | None:
    """The first extents of operands of these *shapes* that *op* needs to be equal, but that differ.

    None if there are none that depend on dimensions.
    """
    for column in _columns(op, shapes):
        several = list(dict.fromkeys(extent for extent in column if extent != 1))
        if len(several) > 1 and dims_of(several):
            return several[0], several[1]
    return None


def _columns(op: Op, shapes: Sequence[Shape]) -> Iterator[Sequence[Extent]]:
    match op:
        case Elementwise():
            yield from _aligned(shapes)
        case Expand(shape=shape):
            yield from _aligned([*shapes, shape])
        case Concat(axis=axis) if len({len(shape) for shape in shapes}) == 1:
            columns = list(zip(*shapes, strict=True))
            yield from (c for d, c in enumerate(columns) if d != axis % len(columns))
        case MatMul():
            left, right = shapes[:2]
            yield left[-1], right[-2]
            yield from _aligned([left[:-2], right[:-2]])


def _aligned(shapes: Sequence[Shape]) -> Iterator[Sequence[Extent]]:
    return zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)


def solved(equation: Equation, free: Collection[Dim]) -> tuple[Dim, Extent] | None:
    """A dimension, and what it must be so that the *equation* holds; None if there is none.

    Args:
        free: Dimensions whose ranges nobody stated, in order; the last one is replaced.  Of others,
            only one with the same range as another can be.
    """
    a, b = equation
    difference = a - b
    assert isinstance(difference, Symbolic)
    for dim in reversed([*free]):
        found = _alone(difference, dim)
        if found is not None:
            return dim, found
    x, y = (_dim(extent) for extent in equation)
    if x and y and (x.low, x.high, x.step) == (y.low, y.high, y.step):
        return y, dim_extent(x)
    return _shortened(a, b, free) or _shortened(b, a, free)


def _alone(difference: Symbolic, dim: Dim) -> Extent | None:
    """The value of *dim* for which *difference* is 0, if it is linear in *dim*."""
    terms = dict(difference.terms)
    c = terms.pop((dim,), 0)
    if abs(c) != 1 or any(dim in _dims(atoms) for atoms in terms):
        return None
    found: Extent = (dim_extent(dim) * c - difference) * c
    return found


def _dims(atoms: Sequence[Atom]) -> tuple[Dim, ...]:
    parts = (part for atom in atoms for part in _parts(atom))
    return dims_of(parts)


def _parts(atom: Atom) -> tuple[Extent, ...]:
    return (atom.a, atom.b) if isinstance(atom, Form) else (dim_extent(atom),)


def _shortened(a: Extent, b: Extent, free: Collection[Dim]) -> tuple[Dim, Extent] | None:
    """For *a* that is the smaller of *b* and a number: a dimension *b* that is never above it."""
    dim = _dim(b)
    if dim is None or dim not in free or not isinstance(a, Symbolic):
        return None
    match a.terms:
        case (((Form(op=SizeOp.MIN, a=first, b=second),), 1),):
            limits = [end for end in (first, second) if isinstance(end, int)]
            if limits and {first, second} == {b, limits[0]} and limits[0] >= max(dim.low, dim.step):
                high = limits[0] // dim.step * dim.step
                return dim, dim_extent(Dim(dim.name, dim.low, high, dim.step))
    return None


def _dim(extent: Extent) -> Dim | None:
    """The dimension that *extent* is."""
    match extent:
        case Symbolic(terms=(((Dim() as dim,), 1),)):
            return dim
    return None
