"""The places of the maxima that pools found, and values put back there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

from ansorpy.graph.ops.base import (
    Arrangement,
    Op,
    Operand,
    Pattern,
    Shape,
    Stored,
    TensorType,
    channels_last_order,
)
from ansorpy.graph.ops.indexing import clamped, kernel_axes, position
from ansorpy.graph.ops.movement import flat
from ansorpy.graph.ops.names import Names, spatial_axes
from ansorpy.graph.ops.pool import Pool
from ansorpy.ir import builders as b
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Axis, Expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute

__all__ = ["PoolPlaces", "Unpool"]


@dataclass(frozen=True)
class PoolPlaces(Op):
    """Where in the data each maximum of ``pool`` is first found: its row-major position.

    Inputs are the data and the maxima.  Positions count from the start of the whole tensor.
    """

    pool: Pool
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(inputs[1].shape, DType.INT64)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """The least position among the taps inside the data that equal the maximum, or are NaN."""
        data, best = inputs
        pool = self.pool
        batch, *size, channels = data.shape
        spatial = spatial_axes(len(size))
        taps = kernel_axes(pool.kernel, spatial)
        nowhere = DType.INT64.limits[1]

        def body(*i: Expr) -> Expr:
            steps = zip(i[1:-1], pool.strides, taps, pool.dilations, pool.pads_begin, strict=True)
            at = [position(o, s, k, d) - pad for o, s, k, d, pad in steps]
            inside = [test for a, e in zip(at, size, strict=True) for test in (a >= 0, a < e)]
            read = [clamped(a, 0, e - 1) for a, e in zip(at, size, strict=True)]
            value, top = data[(i[0], *read, i[-1])], best[i]
            found = value.equal(top)
            if data.dtype.is_float:
                found = found | value.not_equal(value)
            place = flat([i[0], i[-1], *at], (batch, channels, *size))
            axes = [k for k in taps if isinstance(k, Axis)]
            return b.min(b.select(b.all_of(*inside, found), place, nowhere), axes)

        return compute(best.shape, body, name=names.fresh("places"), names=("n", *spatial, "c"))

    def arrange(self, operands: Sequence[Stored], shape: Shape) -> Arrangement:
        last = channels_last_order(len(shape))
        return Arrangement(self, (Operand(last), Operand(last)), last)


@dataclass(frozen=True)
class Unpool(Op):
    """Values put back to where :class:`PoolPlaces` found them, with zeros elsewhere.

    The result has the spatial extents ``size``.  Inputs are the values and their places, which lie
    in the windows of ``pool``.  Where windows overlap, the last of them counts.
    """

    pool: Pool
    size: Shape
    channels_last: bool = False
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    @property
    def candidates(self) -> int:
        """The number of windows that an element may lie in."""
        count = 1
        for kernel, stride in zip(self.pool.kernel, self.pool.strides, strict=True):
            count *= -(-kernel // stride)
        return count

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        values, places = inputs
        if values.shape != places.shape:
            raise ValueError(f"places {places.shape} of values {values.shape}")
        if self.channels_last:
            shape: Shape = (values.shape[0], *self.size, values.shape[-1])
        else:
            shape = (*values.shape[:2], *self.size)
        return TensorType(shape, values.dtype)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """A choice among the values of the windows that an element lies in."""
        values, places = inputs
        pool, counts = self.pool, values.shape[1:-1]
        batch, channels = values.shape[0], values.shape[-1]
        back = [range(-(-k // s))[::-1] for k, s in zip(pool.kernel, pool.strides, strict=True)]

        def body(*i: Expr) -> Expr:
            own = flat([i[0], i[-1], *i[1:-1]], (batch, channels, *self.size))
            last = [
                (o + pad if pad else o) // s
                for o, pad, s in zip(i[1:-1], pool.pads_begin, pool.strides, strict=True)
            ]
            found: Expr | None = None
            for steps in product(*back):
                windows = [w - t for w, t in zip(last, steps, strict=True)]
                inside = [
                    test for w, e in zip(windows, counts, strict=True) for test in (w >= 0, w < e)
                ]
                read = [clamped(w, 0, e - 1) for w, e in zip(windows, counts, strict=True)]
                at = (i[0], *read, i[-1])
                here = b.all_of(*inside, places[at].equal(own))
                found = b.select(here, values[at], 0 if found is None else found)
            assert found is not None
            return found

        shape = (batch, *self.size, channels)
        axes = ("n", *spatial_axes(len(counts)), "c")
        return compute(shape, body, name=names.fresh("unpool"), names=axes)

    def arrange(self, operands: Sequence[Stored], shape: Shape) -> Arrangement:
        last = channels_last_order(len(shape))
        return Arrangement(replace(self, channels_last=True), (Operand(last),) * 2, last)
