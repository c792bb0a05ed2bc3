"""Samples of an image at places that are given as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from operator import add, mul
from typing import ClassVar

from ansorpy.graph.ops.base import Op, Pattern, Rows, Shape, TensorType, types_of
from ansorpy.graph.ops.images.between import as_float, wide
from ansorpy.graph.ops.indexing import clamped
from ansorpy.graph.ops.names import Names
from ansorpy.ir import builders as b
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute

__all__ = ["MODES", "PADDINGS", "GridSample"]

MODES = ("nearest", "linear", "cubic")
PADDINGS = ("zeros", "border", "reflection")

_CUBIC = -0.75
"""The slope parameter of cubic convolution."""


@dataclass(frozen=True)
class GridSample(Op):
    """``x [n, c, *spatial]`` at the places in ``grid [n, *out, rank]``, last spatial axis first.

    Places go from -1 to 1: between the centres of the outermost elements if ``align``, else between
    their outer edges.  Beyond, there are zeros, the nearest element, or reflections.
    """

    mode: str
    padding: str
    align: bool
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x, grid = inputs
        rank = len(x.shape) - 2
        if len(grid.shape) != rank + 2 or grid.shape[-1] != rank or rank < 1:
            raise ValueError(f"a grid of shape {grid.shape} for data of shape {x.shape}")
        if x.shape[0] != grid.shape[0]:
            raise ValueError(f"a batch of {x.shape[0]} with {grid.shape[0]} grids")
        return TensorType((*x.shape[:2], *grid.shape[1:-1]), x.dtype)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """A sum over the elements around each place, each times its weight along every axis."""
        x, grid = inputs
        shape = self.infer(types_of(inputs)).shape
        spatial = x.shape[2:]
        kind = wide(x, grid)

        def body(*i: Expr) -> Expr:
            n, channel, *at = i
            places = []
            for d, extent in enumerate(spatial):
                given = grid[(n, *at, len(spatial) - 1 - d)].astype(kind)
                size = as_float(extent, kind)
                places.append(self._taps(given, size, kind))
            terms = []
            for taps in product(*places):
                value = self._read(x, (n, channel), [place for place, _ in taps], kind)
                weights = [weight for _, weight in taps if weight is not None]
                terms.append(reduce(mul, weights, value))
            return reduce(add, terms).astype(x.dtype)

        return compute(shape, body, name=names.fresh("gridsample"))

    def _taps(self, given: Expr, size: Expr, kind: DType) -> list[tuple[Expr, Expr | None]]:
        """The elements along one axis that count at the place *given*, and their weights."""
        at = (
            (given + 1.0) * ((size - 1.0) * 0.5)
            if self.align
            else ((given + 1.0) * size - 1.0) * 0.5
        )
        # Beside an edge, a cubic reads elements on both sides, but reflections are symmetric.
        if self.mode != "cubic" or self.padding == "reflection":
            at = self._inside(at, size)
        # Far outside, all is alike; a conversion to an integer would overflow.
        at = clamped(at, -4.0, size + 4.0)
        if self.mode == "nearest":
            return [(b.round(at), None)]
        first = b.floor(at)
        part = at - first
        if self.mode == "linear":
            return [(first, 1.0 - part), (first + 1.0, part)]
        weights = (_outer(part + 1.0), _inner(part), _inner(1.0 - part), _outer(2.0 - part))
        return [(first + float(n - 1), weight) for n, weight in enumerate(weights)]

    def _inside(self, at: Expr, size: Expr) -> Expr:
        """*at*, moved into the image as the padding says."""
        if self.padding == "border":
            return clamped(at, 0.0, size - 1.0)
        return self._reflected(at, size) if self.padding == "reflection" else at

    def _reflected(self, at: Expr, size: Expr) -> Expr:
        """*at*, reflected at the centres of the outermost elements, or at their edges."""
        low = as_float(0, size.dtype) if self.align else as_float(0, size.dtype) - 0.5
        span = size - 1.0 if self.align else size
        period = b.maximum(span * 2.0, 1.0)
        away = (at - low) % period
        return b.select(away <= span, away, period - away) + low

    def _read(
        self, x: Tensor, outer: tuple[Expr, Expr], places: Sequence[Expr], kind: DType
    ) -> Expr:
        """The element at *places*, whole numbers, or what the padding has there."""
        inside: list[Expr] = []
        index: list[Expr] = []
        for place, extent in zip(places, x.shape[2:], strict=True):
            size = as_float(extent, kind)
            if self.padding == "zeros":
                inside += [place >= 0.0, place < size]
            moved = b.round(self._inside(place, size)) if self.mode == "cubic" else place
            whole = clamped(moved, 0.0, size - 1.0).astype(DType.INT64)
            index.append(clamped(whole, 0, extent - 1))
        value = x[(*outer, *index)].astype(kind)
        return b.select(b.all_of(*inside), value, 0.0) if inside else value

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return all(o.cut for o in operands)


def _inner(t: Expr) -> Expr:
    """The cubic kernel up to a distance of 1."""
    return ((_CUBIC + 2.0) * t - (_CUBIC + 3.0)) * t * t + 1.0


def _outer(t: Expr) -> Expr:
    """The cubic kernel at distances from 1 to 2."""
    return ((_CUBIC * t - 5.0 * _CUBIC) * t + 8.0 * _CUBIC) * t - 4.0 * _CUBIC
