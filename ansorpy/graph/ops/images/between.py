"""Values between the elements of an image, by linear interpolation along each axis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from operator import mul

from ansorpy.graph.ops.indexing import clamped
from ansorpy.ir import builders as b
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, as_expr
from ansorpy.ir.extents import AnyExtent
from ansorpy.ir.tensor import Tensor

__all__ = ["as_float", "corners", "wide"]


def corners(x: Tensor, outer: Sequence[Expr], places: Sequence[Expr], *, zeros: bool) -> list[Expr]:
    """The elements around *places*, one for each spatial axis, each times its weight.

    Beyond the image, there are zeros, or else the outermost elements.  *outer* is the index of the
    axes before the spatial ones.
    """
    spatial = x.shape[len(outer) :]
    around = [_neighbours(at, extent, zeros) for at, extent in zip(places, spatial, strict=True)]
    terms = []
    for chosen in product(*around):
        value = x[(*outer, *(index for index, _ in chosen))].astype(places[0].dtype)
        terms.append(reduce(mul, [weight for _, weight in chosen], value))
    return terms


def _neighbours(at: Expr, extent: AnyExtent, zeros: bool) -> list[tuple[Expr, Expr]]:
    """The two elements along an axis that *at* lies between, and their weights."""
    size = as_float(extent, at.dtype)
    # Far outside, all is alike; a conversion to an integer would overflow.
    at = clamped(at, -2.0, size + 1.0)
    first = b.floor(at)
    part = at - first
    found = []
    for place, weight in ((first, 1.0 - part), (first + 1.0, part)):
        if zeros:
            weight = b.select(b.all_of(place >= 0.0, place < size), weight, 0.0)
        whole = clamped(place, 0.0, size - 1.0).astype(DType.INT64)
        # A NaN has no place, but must not be read outside.
        found.append((clamped(whole, 0, extent - 1), weight))
    return found


def wide(*tensors: Tensor) -> DType:
    """The type in which places and weights are computed: at least float32."""
    return DType.FLOAT64 if any(t.dtype is DType.FLOAT64 for t in tensors) else DType.FLOAT32


def as_float(extent: AnyExtent, kind: DType) -> Expr:
    """*extent* as a number of a floating-point type."""
    return as_expr(extent).astype(kind)
