"""Dimensions that must be equal: exporters give the same size several names.

A mask's ``total`` is ``past + seq``, and the batches of two inputs are one.  That follows from the
operators that take values with these extents.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from itertools import product, zip_longest
from math import gcd
from operator import and_

from ansorpy.graph.ops import (
    Concat,
    Conv,
    ConvTranspose,
    Elementwise,
    Expand,
    MatMul,
    Op,
    Pool,
    Reshape,
    Shape,
)
from ansorpy.ir.extents import (
    AnyExtent,
    Extent,
    Form,
    Symbolic,
    dim_extent,
    dims_of,
    least,
    prod_of,
)
from ansorpy.ir.sizes import at, fixed
from ansorpy.ir.symbols import Dim, SizeOp

__all__ = ["Equation", "lengthened", "negative", "rooms_of", "solved", "unequal"]

_LONGEST = 1 << 20
"""No operator needs more elements of an axis, whatever came before."""

_STEPS = (2, 4, 8, 16, 32, 64)
"""Sizes that networks which halve and double them need multiples of."""

Equation = tuple[Extent, Extent]
"""Two extents that an operator needs to be equal."""


def unequal(op: Op, shapes: Sequence[Shape]) -> Equation | None:
    """The first extents of operands of these *shapes* that *op* needs to be equal, but that differ.

    None if there are none that depend on dimensions.
    """
    wide = ([extent for extent in column if extent != 1] for column in _broadcast(op, shapes))
    for column in (*_equal(op, shapes), *wide):
        several = list(dict.fromkeys(column))
        if len(several) > 1 and dims_of(several):
            return several[0], several[1]
    return None


def _broadcast(op: Op, shapes: Sequence[Shape]) -> Iterator[Sequence[Extent]]:
    """Extents of which those that are not 1 must be equal."""
    match op:
        case Elementwise():
            yield from _aligned(shapes)
        case Expand(shape=shape):
            yield from _aligned([*shapes, shape])
        case MatMul():
            yield from _aligned([shape[:-2] for shape in shapes])


def _equal(op: Op, shapes: Sequence[Shape]) -> Iterator[Sequence[Extent]]:
    """Extents that must be equal."""
    match op:
        case Concat(axis=axis) if len({len(shape) for shape in shapes}) == 1:
            columns = list(zip(*shapes, strict=True))
            yield from (c for d, c in enumerate(columns) if d != axis % len(columns))
        case MatMul():
            yield shapes[0][-1], shapes[1][-2]
        case Conv(groups=groups):
            yield shapes[0][1], shapes[1][1] * groups
        case ConvTranspose():
            yield shapes[0][1], shapes[1][0]
        case Reshape(shape=shape):
            yield prod_of(shapes[0]), prod_of(shape)


def negative(op: Op, shapes: Sequence[Shape]) -> Extent | None:
    """An extent that *op* needs to be at least 0, but that is below at some sizes; None if none.

    Windows must fit into operands of these *shapes*.
    """
    match op:
        case Conv() | Pool():
            kernel = op.kernel if isinstance(op, Pool) else shapes[1][2:]
            rooms = rooms_of(shapes[0][2:], kernel, op.dilations, op.pads_begin, op.pads_end)
            return next((room for room in rooms if least(room) < 0 and dims_of([room])), None)
    return None


def rooms_of(
    spatial: Shape, kernel: Shape, dilations: Shape, begin: Shape, end: Shape
) -> Iterator[Extent]:
    """How far a window can move along each axis; below 0 if it does not fit."""
    for size, k, d, lo, hi in zip(spatial, kernel, dilations, begin, end, strict=True):
        yield size + lo + hi - d * (k - 1) - 1


def lengthened(extent: Extent, free: Collection[Dim]) -> tuple[Dim, Extent] | None:
    """A dimension, and itself without the sizes at which *extent* is below 0; None if none is free.

    Other dimensions have their least sizes.
    """
    smallest: dict[Dim, Extent] = {dim: dim.low for dim in dims_of([extent])}
    for dim in (dim for dim in smallest if dim in free):
        sizes = range(dim.low, _LONGEST, dim.step)
        fits = bisect_left(sizes, 0, key=lambda n: fixed(at(extent, {**smallest, dim: n})))  # noqa: B023
        if fits < len(sizes):
            low = sizes[fits]
            high = max(dim.high, 4 * low)
            return dim, dim_extent(Dim(dim.name, low, high, dim.step))
    return None


def _aligned(shapes: Sequence[Shape]) -> Iterator[Sequence[Extent]]:
    return zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)


def solved(equation: Equation, free: Collection[Dim]) -> tuple[Dim, Extent] | None:
    """A dimension, and what it must be so that the *equation* holds; None if there is none.

    Args:
        free: Dimensions whose ranges nobody stated, in order; the last one is replaced.  Of others,
            only one with the same range as another can be.
    """
    a, b = equation
    difference: Extent = a - b
    if not isinstance(difference, Symbolic):
        return None
    difference = _without_factors(difference)
    if not isinstance(difference, Symbolic):
        return None
    for dim in reversed([*free]):
        found = _alone(difference, dim)
        if found is not None:
            return dim, found
    fewer = _merged(difference, free) or _stepped(difference, free)
    if fewer is not None:
        return fewer
    x, y = (_dim(extent) for extent in equation)
    if x and y and (x.low, x.high, x.step) == (y.low, y.high, y.step):
        return y, dim_extent(x)
    return _shortened(a, b, free) or _shortened(b, a, free)


def _merged(difference: Symbolic, free: Collection[Dim]) -> tuple[Dim, Extent] | None:
    """One of two dimensions with the same range, and the other, if *difference* is 0 once they are
    the same."""
    pairs = ((x, y) for x in difference.dims for y in difference.dims if x in free and x is not y)
    for x, y in pairs:
        same = (x.low, x.high, x.step) == (y.low, y.high, y.step)
        if same and at(difference, {x: dim_extent(y)}) == 0:
            return x, dim_extent(y)
    return None


def _stepped(difference: Symbolic, free: Collection[Dim]) -> tuple[Dim, Extent] | None:
    """A dimension, and itself with multiples of a power of two only, if *difference* is 0 then."""
    for dim, step in product((d for d in difference.dims if d in free), _STEPS):
        low, high = -(-max(dim.low, 1) // step) * step, dim.high // step * step
        if step > dim.step and low < high:
            fewer = dim_extent(Dim(dim.name, low, high, step))
            if at(difference, {dim: fewer}) == 0:
                return dim, fewer
    return None


def _without_factors(extent: Symbolic) -> Extent:
    """*extent* over what all of its terms have in common, as far as that is never 0."""
    common: AnyExtent = gcd(*(c for _, c in extent.terms))
    shared = reduce(and_, (Counter(atoms) for atoms, _ in extent.terms))
    for atom, count in shared.items():
        factor = Symbolic((((atom,), 1),))
        common = common * prod_of([factor] * count) if least(factor) > 0 else common
    found: Extent = extent // common
    return found


def _alone(difference: Symbolic, dim: Dim) -> Extent | None:
    """The value of *dim* for which *difference* is 0, if it is linear in *dim*."""
    c = dict(difference.terms).get((dim,), 0)
    rest: Extent = difference - dim_extent(dim) * c
    if abs(c) != 1 or dim in dims_of([rest]):
        return None
    return rest * -c


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
