"""Elements written to places that are given as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.graph.ops.base import Op, Pattern, Rows, Shape, TensorType, broadcast
from ansorpy.graph.ops.indexing import broadcast_index
from ansorpy.graph.ops.names import Names
from ansorpy.graph.ops.reduce import reduced_dtype
from ansorpy.ir.builders import REDUCTIONS, select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, ReduceKind
from ansorpy.ir.extents import AnyExtent
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["Scatter"]


@dataclass(frozen=True)
class Scatter(Op):
    """Along ``axis``, of ``size`` elements, the reduction of all updates for the same place.

    Inputs are the places, integers, and the updates, which broadcast to each other.  A place
    outside the axis is that of no element; an element without updates is the reduction's identity.
    Sums of 16-bit floats are float32.
    """

    kind: ReduceKind
    axis: int
    size: AnyExtent
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        places, updates = inputs
        if not places.dtype.is_int:
            raise ValueError(f"places are {places.dtype.value}, not integers")
        if len(places.shape) != len(updates.shape):
            raise ValueError(f"places {places.shape} of updates {updates.shape}")
        shape = list(broadcast([places.shape, updates.shape]))
        shape[self.axis] = self.size
        return TensorType(tuple(shape), reduced_dtype(self.kind, updates.dtype))

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """``out[.., p, ..]`` = the reduction of ``updates[.., k, ..]`` where the place is ``p``.

        **Cost:** every element is compared with all places along the axis.
        """
        places, updates = inputs
        given = broadcast([places.shape, updates.shape])
        axis, wide = self.axis, reduced_dtype(self.kind, updates.dtype)

        def body(*i: Expr) -> Expr:
            k = reduce_axis(given[axis], name="k")
            at = (*i[:axis], k, *i[axis + 1 :])
            place = places[broadcast_index(places.shape, at, given)]
            update = updates[broadcast_index(updates.shape, at, given)].astype(wide)
            here = place.astype(DType.INT64).equal(i[axis])
            return REDUCTIONS[self.kind](select(here, update, self.kind.identity(wide)), axis=k)

        shape: Shape = (*given[:axis], self.size, *given[axis + 1 :])
        return compute(shape, body, name=names.fresh(self.label))

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        whole = all(o.cut and o.shape[0] == shape[0] for o in operands)
        return self.axis > 0 and whole

    @property
    def label(self) -> str:
        return f"scatter_{self.kind.value}"
