"""The magnitude of elements of a definition: the size of the terms they are computed from.

If the terms of a sum cancel, the size of the result says nothing about its rounding errors, which
scale with the terms.  First-order errors scale with the magnitude: if every operation that an
element depends on errs by one unit of rounding, the element changes by a few such units of its
magnitude.
"""

from __future__ import annotations

from collections.abc import Callable

from ansorpy.ir.builders import cos, exp, maximum, sin
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import (
    Binary,
    BinaryOp,
    Call,
    Cast,
    Expr,
    Function,
    Load,
    Reduce,
    ReduceKind,
    Select,
)
from ansorpy.ir.tensor import ComputeOp, Tensor

__all__ = ["magnitude_of"]


def magnitude_of(output: ComputeOp) -> tuple[ComputeDAG, ComputeOp]:
    """A DAG that computes the magnitude of each element of *output*, and its last operator.

    The magnitude of a sum is the sum of the terms' magnitudes, that of a product the product of
    the factors' magnitudes, and that of a function its absolute value plus its slope times the
    operand's magnitude.  The DAG includes the operators of *output*, because conditions and
    divisors read them; none of them is a routine, which has no formula.  Source: running error
    analysis (Higham 2002, section 3.3).

    >>> from ansorpy.ir.tensor import compute, placeholder
    >>> from ansorpy.ir.interpret import run_dag
    >>> import numpy as np
    >>> x = placeholder((2,), name="x")
    >>> y = compute((2,), lambda i: (x[i] + 1.0) - x[i], name="y")
    >>> dag, _ = magnitude_of(y)
    >>> run_dag(dag, {x: np.array([3, -9], np.float32)})[0].tolist()
    [7.0, 19.0]
    """
    made = _Magnitudes().of(output)
    assert isinstance(made, ComputeOp)
    return ComputeDAG([made]), made


class _Magnitudes:
    """Builds magnitudes of operators and expressions, each once, because many may read it."""

    def __init__(self) -> None:
        self._ops: dict[ComputeOp, ComputeOp] = {}
        self._known: dict[Expr, Expr] = {}

    def of(self, tensor: Tensor) -> Tensor:
        """The magnitudes of *tensor*'s elements; for an argument, its (signed) values."""
        if not isinstance(tensor, ComputeOp) or not tensor.dtype.is_float:
            return tensor
        if tensor not in self._ops:
            body, name = self._body(tensor.body), f"{tensor.name}.magnitude"
            self._ops[tensor] = ComputeOp(
                name, tensor.shape, tensor.axes, tensor.reduce_axes, body, tensor.attrs
            )
        return self._ops[tensor]

    def _body(self, body: Expr) -> Expr:
        if not isinstance(body, Reduce):
            return self.expr(body)
        is_extreme = body.kind in (ReduceKind.MAX, ReduceKind.MIN)
        kind = ReduceKind.MAX if is_extreme else body.kind
        return Reduce(kind, self.expr(body.source), body.axes)

    def expr(self, e: Expr) -> Expr:
        """The magnitude of a float *e*; other types are exact and stay as they are."""
        if not e.dtype.is_float:
            return e
        if e not in self._known:
            self._known[e] = self._found(e)
        return self._known[e]

    def _found(self, e: Expr) -> Expr:
        match e:
            case Load(source, indices) if isinstance(source, ComputeOp):
                return Load(self.of(source), indices)
            case Select(cond, then, other):
                return Select(cond, self.expr(then), self.expr(other))
            case Cast(dtype, x) if x.dtype.is_float:
                return Cast(dtype, self.expr(x))
            case Binary(op, a, b):
                return self._of_two(e, op, a, b)
            case Call(Function.FMA, (a, b, c)):
                return self.expr(a) * self.expr(b) + self.expr(c)
            case Call(Function.NEG | Function.ABS, (x,)):
                return self.expr(x)
            case Call(fn, (x,)) if fn in _SLOPES and x.dtype.is_float:
                return abs(e) + _SLOPES[fn](x, e) * self.expr(x)
            case _:
                return abs(e)

    def _of_two(self, e: Expr, op: BinaryOp, a: Expr, b: Expr) -> Expr:
        of_a, of_b = self.expr(a), self.expr(b)
        match op:
            case BinaryOp.ADD | BinaryOp.SUB:
                return of_a + of_b
            case BinaryOp.MUL:
                return of_a * of_b
            case BinaryOp.MIN | BinaryOp.MAX:
                return maximum(of_a, of_b)
            case BinaryOp.DIV:
                return (of_a + abs(e) * of_b) / abs(b)
            case _:
                return abs(e)


_SLOPES: dict[Function, Callable[[Expr, Expr], Expr]] = {
    Function.EXP: lambda x, value: value,
    Function.LOG: lambda x, value: 1.0 / abs(x),
    Function.SQRT: lambda x, value: 0.5 / value,
    Function.RSQRT: lambda x, value: 0.5 * value / abs(x),
    Function.TANH: lambda x, value: 1.0 - value * value,
    Function.ERF: lambda x, value: 1.1283791670955126 * exp(-(x * x)),
    Function.SIN: lambda x, value: abs(cos(x)),
    Function.COS: lambda x, value: abs(sin(x)),
}
"""Absolute slopes of functions, given the operand and the function's value."""
