"""How far rounding may take a program from its definition: a bound derived, not measured.

The reference is computed in float64.  A program computes the same operations in the declared types,
adding up sums in any order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
    walk,
)
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import ComputeOp, Tensor
from ansorpy.measure.check.compare import extra_error, tolerance

__all__ = ["Reference"]

Array = NDArray[Any]

_FUNCTION = 16.0
"""Units of rounding by which an elementary function may be off: twice the largest error stated."""
_ROUGH = 0.25
"""A first-order bound means nothing beyond this relative error."""


class Reference:
    """What *dag* computes for *data*, and the error that each element may have.

    To first order, an element errs by at most the relative errors that meet in it, added up, times
    its magnitude (:mod:`ansorpy.ir.analysis.magnitude`).  Source: running error analysis (Higham
    2002, section 3.3).

    Attributes:
        reason: Why there is no bound for this data, or empty: a 16-bit float overflows, or errors
            add up to a fourth of a value.
    """

    def __init__(self, dag: ComputeDAG, data: Mapping[str, Array]) -> None:
        self.dag, self.data, self.reason = dag, data, ""
        self.expected = run_dag(dag, data, dtype=DType.FLOAT64)
        self._relative = _Relative()
        self._magnitudes = {
            op: self._magnitude(op)
            for op in dag.computes
            if op.dtype.is_float and (op.dtype.bits == 16 or dag.is_output(op))
        }

    def _magnitude(self, op: ComputeOp) -> Array:
        magnitudes, _ = magnitude_of(op)
        found = run_dag(magnitudes, self.data, dtype=DType.FLOAT64)[0]
        if not found.max(initial=0.0) < op.dtype.normal[1] / 2:
            self.reason = self.reason or f"{op.dtype.value} overflows"
        if self._relative.of(op) > _ROUGH:
            self.reason = self.reason or f"{op.dtype.value} is too rough"
        return found

    def shares(self, found: Sequence[Array], definition: ComputeDAG) -> list[float]:
        """The largest error of each output as a share of what is allowed, infinite for integers.

        *definition* is the one that was computed, an equivalent of the reference's own.
        """
        assert not self.reason
        more = extra_error(self.dag, definition)
        found_shares = []
        for output, got, want in zip(self.dag.outputs, found, self.expected, strict=True):
            if not output.dtype.is_float:
                found_shares.append(0.0 if np.array_equal(got, want) else math.inf)
                continue
            allowed = self._allowed(output)
            if more:
                largest = float(np.abs(want).max(initial=0.0))
                allowed = allowed + (more + tolerance(self.dag, output)) * largest
            off = np.abs(got.astype(np.float64) - want)
            share = np.nan_to_num(np.where(off == 0, 0.0, off / allowed), nan=np.inf)
            found_shares.append(float(share.max(initial=0.0)))
        return found_shares

    def _allowed(self, output: Tensor) -> Array:
        assert isinstance(output, ComputeOp)
        relative, stages = self._relative.of(output), self.dag.leading_to(output)
        magnitude = self._magnitudes[output]
        least = max(_least(op) for op in stages if op.dtype.is_float)
        terms = sum(2 + math.prod(axis.extent for axis in op.reduce_axes) for op in stages)
        underflow = terms * least * max(1.0, float(magnitude.max(initial=0.0)))
        found: Array = 2 * relative * magnitude + underflow
        return found


def _least(op: ComputeOp) -> float:
    """How far below the normal numbers an operation of *op* may err, whatever its value.

    A rounding errs by half the least number.  A quotient errs by itself if its divisor overflows:
    ``1 / (1 + exp(100))`` is 0 in float32, but 4e-44 in float64.
    """
    least, most = op.dtype.normal
    divides = any(
        isinstance(e, Binary) and e.op is BinaryOp.DIV and e.dtype.is_float for e in walk(op.body)
    )
    return 1 / most if divides else least * op.dtype.epsilon


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
