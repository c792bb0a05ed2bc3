"""How far rounding may take a program from its definition: a bound derived, not measured.

The reference is computed in float64.  A program computes the same operations in the declared types,
adding up sums in any order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansorpy.ir.analysis.magnitude import magnitude_of
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Binary,
    BinaryOp,
    Call,
    Cast,
    Const,
    Expr,
    Function,
    Load,
    Reduce,
    ReduceKind,
    Select,
)
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import ComputeOp, Tensor

__all__ = ["Bounds", "share_of_bound"]

Array = NDArray[Any]

_FUNCTION = 16.0
"""Units of rounding by which an elementary function may be off: twice the largest error stated."""
_ROUGH = 0.25
"""A first-order bound means nothing beyond this relative error."""


class Bounds:
    """The error that each output of *dag* may have for some data, element by element.

    To first order, an element errs by at most the relative errors that meet in it, added up, times
    its magnitude (:mod:`ansorpy.ir.analysis.magnitude`).  Source: running error analysis (Higham
    2002, section 3.3).

    Attributes:
        reason: Why there is no bound for this data, or empty: a 16-bit float overflows, or errors
            add up to a fourth of a value.
    """

    def __init__(self, dag: ComputeDAG, data: Mapping[str, Array]) -> None:
        self.reason = ""
        self._dag, self._data = dag, data
        self._magnitudes: dict[ComputeOp, Array] = {}
        relative = _Relative()
        for op in dag.computes:
            if op.dtype.is_float and (op.dtype.bits == 16 or op in dag.outputs):
                self._look_at(op, relative.of(op))
        self._relative = relative

    def _look_at(self, op: ComputeOp, relative: float) -> None:
        magnitudes, _ = magnitude_of(op)
        found = run_dag(magnitudes, self._data, dtype=DType.FLOAT64)[0]
        self._magnitudes[op] = found
        if not found.max(initial=0.0) < op.dtype.normal[1] / 2:
            self.reason = self.reason or f"{op.dtype.value} overflows"
        if relative > _ROUGH:
            self.reason = self.reason or f"{op.dtype.value} is too rough"

    def of(self, output: Tensor) -> Array | None:
        """The bound of each element of *output*; None if it must be equal."""
        if not isinstance(output, ComputeOp) or not output.dtype.is_float:
            return None
        relative, stages = self._relative.of(output), self._dag.leading_to(output)
        magnitude = self._magnitudes[output]
        # Below the normal numbers a rounding errs by half the least one, whatever the value.
        least = max(op.dtype.normal[0] * op.dtype.epsilon for op in stages if op.dtype.is_float)
        terms = sum(2 + math.prod(axis.extent for axis in op.reduce_axes) for op in stages)
        underflow = terms * least * max(1.0, float(magnitude.max(initial=0)))
        found: Array = 2 * relative * magnitude + underflow
        return found


def share_of_bound(got: Array, want: Array, bound: Array | None) -> float:
    """The largest error of *got* as a fraction of its bound; 0 if equal, infinity if it must be."""
    if bound is None:
        return 0.0 if np.array_equal(got, want) else math.inf
    off = np.abs(got.astype(np.float64) - want)
    return float(np.nan_to_num(np.where(off == 0, 0.0, off / bound), nan=np.inf).max(initial=0.0))


class _Relative:
    """Relative errors of operators and expressions, each once, because many may read it."""

    def __init__(self) -> None:
        self._ops: dict[Tensor, float] = {}
        self._known: dict[Expr, float] = {}

    def of(self, tensor: Tensor) -> float:
        if not isinstance(tensor, ComputeOp) or not tensor.dtype.is_float:
            return 0.0
        if tensor not in self._ops:
            self._ops[tensor] = self.expr(tensor.body)
        return self._ops[tensor]

    def expr(self, e: Expr) -> float:
        if not e.dtype.is_float:
            return 0.0
        if e not in self._known:
            self._known[e] = self._found(e)
        return self._known[e]

    def _found(self, e: Expr) -> float:
        unit = e.dtype.epsilon / 2
        match e:
            case Load(source, _):
                assert isinstance(source, Tensor)
                return self.of(source)
            case Const():
                return unit
            case Select(_, then, other) | Binary(BinaryOp.MIN | BinaryOp.MAX, then, other):
                return max(self.expr(then), self.expr(other))
            case Binary(BinaryOp.ADD | BinaryOp.SUB, a, b):
                return max(self.expr(a), self.expr(b)) + unit
            case Binary(_, a, b):
                return self.expr(a) + self.expr(b) + unit
            case Call(Function.NEG | Function.ABS, (x,)):
                return self.expr(x)
            case Call(_, args):
                return sum(map(self.expr, args)) + _FUNCTION * unit
            case Cast(_, x):
                return self.expr(x) + unit
            case Reduce():
                return self._of_reduction(e, unit)
        raise AssertionError(f"no rule for {type(e).__name__}")

    def _of_reduction(self, e: Reduce, unit: float) -> float:
        one, terms = self.expr(e.source), math.prod(axis.extent for axis in e.axes)
        match e.kind:
            case ReduceKind.SUM:
                return one + terms * unit
            case ReduceKind.PROD:
                return terms * (one + unit)
        return one
