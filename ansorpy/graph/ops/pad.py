"""Padding and cropping."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar

from ansorpy.graph.ops.base import Op, Pattern, Rows, Shape, TensorType, is_first_cut, pick
from ansorpy.graph.ops.indexing import clamped, guarded, wrapped_index
from ansorpy.graph.ops.names import Names
from ansorpy.ir.builders import maximum
from ansorpy.ir.expr import Expr
from ansorpy.ir.extents import AnyExtent, most
from ansorpy.ir.tensor import ComputeOp, Tensor, compute

__all__ = ["Pad", "PadMode"]


class PadMode(Enum):
    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    WRAP = "wrap"


@dataclass(frozen=True)
class Pad(Op):
    """Extend each axis; ``value`` fills CONSTANT padding.  Negative amounts crop."""

    begin: Shape
    end: Shape
    mode: PadMode
    value: float
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(self._extents(inputs[0].shape), inputs[0].dtype)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """Constant padding guards the read; the other modes map the index back inside."""
        (x,) = inputs

        def body(*i: Expr) -> Expr:
            shifted = [a if b == 0 else a - b for a, b in zip(i, self.begin, strict=True)]
            if self.mode is PadMode.CONSTANT:
                guards = [
                    (d, most(self.begin[d]) > 0, most(self.end[d]) > 0) for d in range(x.ndim)
                ]
                return guarded(x, shifted, guards, self.value)
            fold = _FOLDS[self.mode]
            return x[tuple(fold(a, e) for a, e in zip(shifted, x.shape, strict=True))]

        return compute(self._extents(x.shape), body, name=names.fresh("pad"))

    def _extents(self, shape: Shape) -> Shape:
        return tuple(b + e + a for b, e, a in zip(self.begin, shape, self.end, strict=True))

    def reordered(self, order: Shape) -> Op:
        return replace(self, begin=pick(self.begin, order), end=pick(self.end, order))

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return is_first_cut(operands) and self.begin[0] == self.end[0] == 0


def _reflected(index: Expr, extent: AnyExtent) -> Expr:
    """*index* mirrored at both ends without repeating the border (ONNX ``reflect``)."""
    inside = maximum(index, 0 - index)
    beyond = inside - (extent - 1)
    return (extent - 1) - maximum(beyond, 0 - beyond)


_FOLDS: Mapping[PadMode, Callable[[Expr, AnyExtent], Expr]] = {
    PadMode.EDGE: lambda index, extent: clamped(index, 0, extent - 1),
    PadMode.REFLECT: _reflected,
    PadMode.WRAP: wrapped_index,
}
"""The index inside that is read at an index that may be outside, by the mode."""
