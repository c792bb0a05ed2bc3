"""Regions of images that are given as data, each brought to the same size."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import ClassVar, TypeAlias

from ansorpy.graph.ops.base import Op, Pattern, Rows, Shape, TensorType
from ansorpy.graph.ops.images.between import as_float, corners, wide
from ansorpy.graph.ops.indexing import clamped, wrapped_index
from ansorpy.graph.ops.names import Names
from ansorpy.ir import builders as b
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Axis, Expr
from ansorpy.ir.extents import AnyExtent
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["RegionAlign", "RegionCrop", "RegionMax", "RegionMean", "RegionPeak"]


@dataclass(frozen=True)
class _OfRegions(Op):
    """``size`` elements of each region, one after another.

    Inputs are images ``[n, c, h, w]``, regions ``[r, 4]`` and the number of the image of each,
    ``[r]``, which wraps around; each region may need the whole of its image.
    """

    size: tuple[int, int]
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x, regions, images = inputs
        if len(x.shape) != 4 or len(regions.shape) != 2 or regions.shape[1] != 4:
            raise ValueError(f"regions of shape {regions.shape} for data of shape {x.shape}")
        if images.shape != regions.shape[:1]:
            raise ValueError(f"{images.shape} image numbers for {regions.shape[0]} regions")
        return TensorType((regions.shape[0], x.shape[1], *self.size), x.dtype)

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        x, *others = operands
        return not x.cut and all(o.cut for o in others)


@dataclass(frozen=True)
class RegionAlign(_OfRegions):
    """Means or maxima of ``samples`` by ``samples`` values in each of ``size`` bins of regions.

    Inputs are an image ``[n, c, h, w]``, regions ``[r, 4]`` (left, top, right, bottom, times
    ``scale``) and the image of each, ``[r]``; the result is ``[r, c, *size]``.  If ``half``, pixel
    centres lie between whole numbers; otherwise, regions are at least one pixel wide.  Maxima are
    those of the elements around the samples, each times its weight.
    """

    samples: int
    scale: float
    half: bool
    maximum: bool

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """The bins' values in at least float32, then in the type of the data."""
        x, regions, images = inputs
        kind = wide(regions)
        shape = (regions.shape[0], x.shape[1], *self.size)
        counted = float(self.samples * self.samples)

        def sampled(*i: Expr) -> Expr:
            r, channel, *bins = i
            steps = [reduce_axis(self.samples, name=f"s{name}") for name in "hw"]
            places, inside = [], []
            for d in range(2):
                at = self._place(regions, r, bins[d], steps[d], d, kind)
                size = as_float(x.shape[2 + d], kind)
                inside += [at >= -1.0, at <= size]
                places.append(clamped(at, 0.0, size - 1.0))
            outer = (wrapped_index(images[r], x.shape[0]), channel)
            terms = corners(x, outer, places, zeros=False)
            value = reduce(b.maximum if self.maximum else add, terms)
            value = b.select(b.all_of(*inside), value, 0.0)
            return b.max(value, steps) if self.maximum else b.sum(value, steps)

        axes = ("r", "c", "h", "w")
        name = names.fresh("samples")
        total = compute(shape, sampled, name=name, names=axes)

        def result(*i: Expr) -> Expr:
            value = total[i] if self.maximum else total[i] * (1.0 / counted)
            return value.astype(x.dtype)

        return compute(shape, result, name=names.fresh("region"), names=axes)

    def _place(
        self, regions: Tensor, r: Expr, number: Expr, step: Expr, axis: int, kind: DType
    ) -> Expr:
        """Where a sample of a bin lies along the vertical (0) or horizontal axis."""
        first, width = _bin(regions, r, number, axis, self.size[axis], self.scale, self.half)
        inner = (step.astype(kind) + 0.5) * (1.0 / self.samples)
        return first + inner * width


@dataclass(frozen=True)
class _BySize(_OfRegions):
    """As many samples in each of ``size`` bins as these are elements high and wide.

    Inputs, ``scale`` and ``half`` are as of :class:`RegionAlign`.  The samples form a grid, so rows
    are combined first, and then columns.

    **Cost:** all rows and columns of the image are combined for each region.
    """

    scale: float
    half: bool

    @abstractmethod
    def _combined(self, value: Expr, weights: Sequence[Expr], k: Axis) -> Expr:
        """All values along axis *k*, each of which has these *weights*."""

    def _samples(
        self, regions: Tensor, r: Expr, number: Expr, axis: int
    ) -> tuple[Expr, Expr, Expr]:
        """Where a bin begins along an axis, how far its samples are apart, and their number."""
        first, width = _bin(regions, r, number, axis, self.size[axis], self.scale, self.half)
        count = b.ceil(width)
        return first, width / b.maximum(count, 1.0), count

    def _weights(
        self, regions: Tensor, axis: int, extent: AnyExtent, names: Names, made: _Weight
    ) -> ComputeOp:
        """What *made* gives each element along an axis in each bin, ``[regions, bins, extent]``."""
        kind = wide(regions)

        def body(r: Expr, number: Expr, y: Expr) -> Expr:
            j = reduce_axis(_NEAR, name="j")
            first, step, count = self._samples(regions, r, number, axis)
            here, size = y.astype(kind), as_float(extent, kind)
            # Samples at most one element away count; the first of them has this number.
            before = b.maximum(b.floor((here - 1.0 - first) / step - 0.5), 0.0)
            k = before + j.astype(kind)
            at = first + (k + 0.5) * step
            share = b.maximum(1.0 - b.abs(clamped(at, 0.0, size - 1.0) - here), 0.0)
            return made(share, b.all_of(k < count, at >= -1.0, at <= size), count, j)

        shape = (regions.shape[0], self.size[axis], extent)
        return compute(shape, body, name=names.fresh("weights"), names=("r", "p", "y"))

    def _bins(
        self, inputs: Sequence[Tensor], names: Names, weights: Sequence[Sequence[Tensor]]
    ) -> ComputeOp:
        """The values of all bins; *weights* are those of rows and those of columns."""
        x, regions, images = inputs
        kind = wide(regions)
        count, channels = regions.shape[0], x.shape[1]

        def by_rows(r: Expr, c: Expr, p: Expr, column: Expr) -> Expr:
            k = reduce_axis(x.shape[2], name="k")
            value = x[wrapped_index(images[r], x.shape[0]), c, k, column].astype(kind)
            return self._combined(value, [of[r, p, k] for of in weights[0]], k)

        rows = compute(
            (count, channels, self.size[0], x.shape[3]), by_rows,
            name=names.fresh("rows"), names=("r", "c", "h", "w"),
        )  # fmt: skip

        def by_columns(r: Expr, c: Expr, p: Expr, q: Expr) -> Expr:
            k = reduce_axis(x.shape[3], name="k")
            return self._combined(rows[r, c, p, k], [of[r, q, k] for of in weights[1]], k)

        shape = (count, channels, *self.size)
        return compute(shape, by_columns, name=names.fresh("bins"), names=("r", "c", "h", "w"))


@dataclass(frozen=True)
class RegionMean(_BySize):
    """Means of samples whose number depends on the size of a bin; a bin without any has 0."""

    def _combined(self, value: Expr, weights: Sequence[Expr], k: Axis) -> Expr:
        return b.sum(weights[0] * value, k)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """The weights of rows and of columns in each bin, and the products with both."""
        x, regions, _ = inputs

        def part(share: Expr, inside: Expr, count: Expr, j: Axis) -> Expr:
            return b.sum(b.select(inside, share / count, 0.0), j)

        weights = [[self._weights(regions, d, x.shape[2 + d], names, part)] for d in range(2)]
        mean = self._bins(inputs, names, weights)
        return compute(
            mean.shape, lambda *i: mean[i].astype(x.dtype), name=names.fresh("region"),
            names=("r", "c", "h", "w"),
        )  # fmt: skip


@dataclass(frozen=True)
class RegionPeak(_BySize):
    """Maxima of samples whose number depends on the size of a bin, as :class:`RegionAlign`'s.

    A bin without samples has 0, and so have samples outside the image.
    """

    def _combined(self, value: Expr, weights: Sequence[Expr], k: Axis) -> Expr:
        most, least = weights
        largest = value * b.select(value >= 0.0, most, least)
        return b.max(b.select(most > 0.0, largest, _LOWEST), k)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """The largest and the smallest weight of each row and column in each bin; the products of
        all elements with them; the largest product, or 0.

        A negative element is largest with its smallest weight.
        """
        x, regions, _ = inputs

        def most(share: Expr, inside: Expr, count: Expr, j: Axis) -> Expr:
            return b.max(b.select(inside, share, 0.0), j)

        def least(share: Expr, inside: Expr, count: Expr, j: Axis) -> Expr:
            # At an element, the sample takes 0 of the next one.
            taken = b.select(share < 1.0, share, 0.0)
            return b.min(b.select(b.all_of(inside, share > 0.0), taken, 1.0), j)

        weights = [
            [self._weights(regions, d, x.shape[2 + d], names, of) for of in (most, least)]
            for d in range(2)
        ]
        peak = self._bins(inputs, names, weights)

        def result(r: Expr, c: Expr, p: Expr, q: Expr) -> Expr:
            value = peak[r, c, p, q]
            for d, number in enumerate((p, q)):
                first, step, count = self._samples(regions, r, number, d)
                size = as_float(x.shape[2 + d], wide(regions))
                last = first + (count - 0.5) * step
                beyond = (first + 0.5 * step < -1.0) | (last > size)
                value = b.select(beyond, b.maximum(value, 0.0), value)
                value = b.select(count > 0.0, value, 0.0)
            return value.astype(x.dtype)

        return compute(peak.shape, result, name=names.fresh("region"), names=("r", "c", "h", "w"))


@dataclass(frozen=True)
class RegionCrop(_OfRegions):
    """Regions sampled at ``size`` places, the outermost of which are at their corners.

    Inputs are as of :class:`RegionAlign`, but regions are ``[r, 4]`` (top, left, bottom, right)
    and go from 0, the first row or column of the image, to 1, its last.  Outside the image, there
    is ``beyond``.  Samples are interpolated, or the element that is next if ``nearest``.
    """

    nearest: bool
    beyond: float

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """A sum of the elements around each place; rounded places have one that counts."""
        x, regions, images = inputs
        kind = wide(regions)

        def body(r: Expr, channel: Expr, *bins: Expr) -> Expr:
            places, inside = [], []
            for d in range(2):
                last = as_float(x.shape[2 + d], kind) - 1.0
                at = self._place(regions, r, bins[d], d, kind) * last
                inside += [at >= 0.0, at <= last]
                places.append(b.floor(at + 0.5) if self.nearest else at)
            terms = corners(x, (wrapped_index(images[r], x.shape[0]), channel), places, zeros=False)
            return b.select(b.all_of(*inside), reduce(add, terms), self.beyond).astype(x.dtype)

        shape = (regions.shape[0], x.shape[1], *self.size)
        return compute(shape, body, name=names.fresh("crop"), names=("r", "c", "h", "w"))

    def _place(self, regions: Tensor, r: Expr, number: Expr, axis: int, kind: DType) -> Expr:
        """Where sample *number* is along an axis, as part of the image; a single one is amid."""
        first, last = (regions[r, axis + 2 * end].astype(kind) for end in range(2))
        steps = self.size[axis] - 1
        if steps == 0:
            return (first + last) * 0.5
        part = number.astype(kind) * (1.0 / steps)
        return b.select(number.equal(steps), last, first + part * (last - first))


_NEAR = 6
"""Samples are at least half an element apart, so at most five are within one of an element; one
more allows for rounding."""

_LOWEST = -3e38
"""Less than the data; a product with 0 is a number."""

_Weight: TypeAlias = Callable[[Expr, Expr, Expr, Axis], Expr]
"""A reduction over the samples near an element: their shares, whether they count, how many samples
the bin has, and the axis that numbers those that are near."""


def _bin(
    regions: Tensor, r: Expr, number: Expr, axis: int, count: int, scale: float, half: bool
) -> tuple[Expr, Expr]:
    """Where a bin begins along the vertical (0) or horizontal axis, and how long it is."""
    kind = wide(regions)
    shift = 0.5 if half else 0.0
    first, last = (regions[r, 1 - axis + 2 * end].astype(kind) * scale - shift for end in range(2))
    extent = last - first if half else b.maximum(last - first, 1.0)
    width = extent / float(count)  # the product with a reciprocal may be above a whole number
    return first + number.astype(kind) * width, width


@dataclass(frozen=True)
class RegionMax(_OfRegions):
    """The largest element in each of ``size`` bins of regions; 0 where a bin has no elements.

    Inputs are as of :class:`RegionAlign`.  The corners, times ``scale``, are rounded, halves away
    from zero, and belong to the region; bins reach as far as the elements that they have parts of.
    """

    scale: float

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """Maxima over the rows of each bin, then over its columns.

        **Cost:** whole rows and columns of the image are compared with the bounds of each bin.
        """
        x, regions, images = inputs
        height, width = x.shape[2:]
        least = float("-inf")
        count = regions.shape[0]

        def of_rows(r: Expr, c: Expr, p: Expr, column: Expr) -> Expr:
            k = reduce_axis(height, name="k")
            first, end = self._bounds(regions, r, p, 0, height)
            value = x[wrapped_index(images[r], x.shape[0]), c, k, column]
            return b.max(b.select(b.all_of(k >= first, k < end), value, least), k)

        rows = compute(
            (count, x.shape[1], self.size[0], width), of_rows,
            name=names.fresh("rows"), names=("r", "c", "h", "w"),
        )  # fmt: skip

        def of_columns(r: Expr, c: Expr, p: Expr, q: Expr) -> Expr:
            k = reduce_axis(width, name="k")
            first, end = self._bounds(regions, r, q, 1, width)
            return b.max(b.select(b.all_of(k >= first, k < end), rows[r, c, p, k], least), k)

        shape = (count, x.shape[1], *self.size)
        axes = ("r", "c", "h", "w")
        best = compute(shape, of_columns, name=names.fresh("bins"), names=axes)

        def result(r: Expr, c: Expr, p: Expr, q: Expr) -> Expr:
            bounds = [
                self._bounds(regions, r, at, d, x.shape[2 + d]) for d, at in enumerate((p, q))
            ]
            filled = b.all_of(*(first < end for first, end in bounds))
            return b.select(filled, best[r, c, p, q], 0.0)

        return compute(shape, result, name=names.fresh("region"), names=axes)

    def _bounds(
        self, regions: Tensor, r: Expr, number: Expr, axis: int, extent: AnyExtent
    ) -> tuple[Expr, Expr]:
        """The first element of a bin along an axis, and the one behind its last."""
        kind = wide(regions)
        size = as_float(extent, kind)
        start, last = (
            _rounded(regions[r, 1 - axis + 2 * end].astype(kind) * self.scale) for end in range(2)
        )
        width = b.maximum(last - start + 1.0, 1.0) / float(self.size[axis])
        at = number.astype(kind)
        ends = (b.floor(at * width) + start, b.ceil((at + 1.0) * width) + start)
        first, end = (clamped(e, 0.0, size).astype(DType.INT64) for e in ends)
        return first, end


def _rounded(x: Expr) -> Expr:
    """*x* rounded, halves away from zero."""
    size = b.floor(b.abs(x) + 0.5)
    return b.select(x < 0, -size, size)
