"""Upper bounds on absolute values that hold for any input."""

from __future__ import annotations

import math

from ansorpy.ir.expr import (
    Binary,
    BinaryOp,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Reduce,
    ReduceKind,
    Select,
)
from ansorpy.ir.functions import Function
from ansorpy.ir.tensor import ComputeOp, Tensor

__all__ = ["largest_value"]

_UP_TO_ONE = frozenset({Function.TANH, Function.ERF, Function.SIN, Function.COS})


def largest_value(tensor: Tensor) -> float:
    """Bound the absolute values of *tensor*'s elements; infinity if no bound is known.

    Bounds are known for functions that saturate: tanh, sigmoid, clipping.
    """
    return _Bounds().of(tensor)


class _Bounds:
    """Bounds of expressions, memoized since subexpressions may be shared."""

    def __init__(self) -> None:
        self._known: dict[Expr, float] = {}

    def of(self, tensor: Tensor) -> float:
        return self.largest(tensor.body) if isinstance(tensor, ComputeOp) else math.inf

    def largest(self, e: Expr) -> float:
        if e not in self._known:
            self._known[e] = self._found(e)
        return self._known[e]

    def _found(self, e: Expr) -> float:
        match e:
            case Const(value, _):
                return abs(float(value))
            case Load(source, _) if isinstance(source, Tensor):
                return self.of(source)
            case Call(fn, _) if fn in _UP_TO_ONE:
                return 1.0
            case Call(Function.NEG | Function.ABS, (x,)) | Cast(_, x):
                return self.largest(x)
            case Select(_, a, b):
                return max(self.largest(a), self.largest(b))
            case Reduce(ReduceKind.MAX | ReduceKind.MIN, x, _):
                return self.largest(x)
            case Binary():
                return self._of_two(e)
        return math.inf

    def _of_two(self, e: Binary) -> float:
        a, b = self.largest(e.a), self.largest(e.b)
        match e:
            case Binary(BinaryOp.ADD | BinaryOp.SUB, _, _):
                return a + b
            case Binary(BinaryOp.MUL, _, _):
                return a * b if a and b else 0.0
            case Binary(
                BinaryOp.DIV, _, Binary(BinaryOp.ADD, Const(one, _), Call(Function.EXP, _))
            ):
                return a / float(one) if one > 0 else math.inf
            case Binary(BinaryOp.MIN, Binary(BinaryOp.MAX, _, Const(low, _)), Const(high, _)):
                return max(abs(float(low)), abs(float(high)))
            case Binary(BinaryOp.MAX, Binary(BinaryOp.MIN, _, Const(high, _)), Const(low, _)):
                return max(abs(float(low)), abs(float(high)))
        return math.inf
