"""Counts the arithmetic operations of a definition."""

from __future__ import annotations

from math import prod

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Binary, Call, Cast, Compare, Expr, Function, Reduce, Select
from ansorpy.ir.sizes import fixed
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor

__all__ = ["flops"]


def flops(definition: ComputeDAG | Tensor) -> float:
    """Operations of a DAG or one op: space size times the operations of its body.

    An operation counts when its operands are of the op's own class (float, signed, unsigned,
    bool), so index arithmetic in a float op is free.  A reduction adds one per element, a selection
    its condition and its costlier side, a function call only its operands.  A shared expression
    counts at each place that uses it.  Attribute ``flops`` of an op overrides the count.

    TVM: FlopEstimator of the auto-scheduler.

    >>> from ansorpy.ir.builders import sum
    >>> from ansorpy.ir.tensor import compute, placeholder, reduce_axis
    >>> A, B = placeholder((4, 8), name="A"), placeholder((8, 5), name="B")
    >>> k = reduce_axis(8, name="k")
    >>> flops(compute((4, 5), lambda i, j: sum(A[i, k] * B[k, j], axis=k), name="C"))
    320.0
    """
    if isinstance(definition, ComputeDAG):
        return sum((flops(op) for op in definition.computes), 0.0)
    if isinstance(definition, PlaceholderOp):
        return 0.0
    assert isinstance(definition, ComputeOp)
    if definition.attrs.flops is not None:
        return float(definition.attrs.flops)
    return float(fixed(definition.size)) * _Counter(_family(definition.dtype)).count(
        definition.body
    )


def _family(dtype: DType) -> str:
    if dtype.is_float:
        return "float"
    return "bool" if dtype is DType.BOOL else "int" if dtype.is_signed else "uint"


class _Counter:
    """Counts operations by occurrence; the count of a shared expression is computed once."""

    def __init__(self, family: str):
        self.family = family
        self._known: dict[Expr, float] = {}

    def count(self, e: Expr) -> float:
        found = self._known.get(e)
        if found is None:
            found = self._known[e] = self._count(e)
        return found

    def _count(self, e: Expr) -> float:
        match e:
            case Reduce(_, source, axes):
                return prod(axis.extent for axis in axes) * (1.0 + self.count(source))
            case Binary(_, a, b) | Compare(_, a, b):
                return self._own(a) + self.count(a) + self.count(b)
            case Call(fn, args):
                own = {Function.NEG: 1, Function.NOT: 1, Function.FMA: 2}.get(fn, 0)
                return own * self._own(args[0]) + sum(self.count(a) for a in args)
            case Select(cond, then, other):
                return self.count(cond) + max(self.count(then), self.count(other))
            case Cast(_, x):
                return self.count(x)
            case _:
                return 0.0

    def _own(self, operand: Expr) -> float:
        return 1.0 if _family(operand.dtype) == self.family else 0.0
