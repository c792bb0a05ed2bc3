"""Elementwise functions, broadcast as numpy does, and conversions of the element type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from ansorpy.graph.op.base import Op, Pattern, TensorType, broadcast, common_dtype
from ansorpy.ir.dtypes import DType

__all__ = ["Cast", "Elementwise", "Fn"]


class Fn(Enum):
    """Elementwise functions; ``Elementwise.params`` holds their literal parameters."""

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"
    MAX = "max"
    MIN = "min"
    POW = "pow"
    RELU = "relu"
    LEAKY_RELU = "leaky_relu"
    PRELU = "prelu"
    ELU = "elu"
    CELU = "celu"
    SELU = "selu"
    SIGMOID = "sigmoid"
    HARD_SIGMOID = "hard_sigmoid"
    TANH = "tanh"
    SOFTPLUS = "softplus"
    SOFTSIGN = "softsign"
    CLIP = "clip"
    EXP = "exp"
    LOG = "log"
    SQRT = "sqrt"
    RECIPROCAL = "reciprocal"
    NEG = "neg"
    ABS = "abs"
    ERF = "erf"
    FLOOR = "floor"
    CEIL = "ceil"
    ROUND = "round"
    SIGN = "sign"
    SIN = "sin"
    COS = "cos"
    TAN = "tan"
    ASIN = "asin"
    ACOS = "acos"
    ATAN = "atan"
    SINH = "sinh"
    COSH = "cosh"
    ASINH = "asinh"
    ACOSH = "acosh"
    ATANH = "atanh"
    MOD = "mod"
    REMAINDER = "remainder"
    IS_NAN = "is_nan"
    EQUAL = "equal"
    LESS = "less"
    LESS_EQUAL = "less_equal"
    AND = "and"
    OR = "or"
    NOT = "not"
    WHERE = "where"


_COMPARISONS = frozenset({Fn.EQUAL, Fn.LESS, Fn.LESS_EQUAL, Fn.IS_NAN})
_LOGIC = frozenset({Fn.AND, Fn.OR, Fn.NOT})


@dataclass(frozen=True)
class Elementwise(Op):
    """``fn`` at each element, operands broadcast as numpy does."""

    fn: Fn
    params: tuple[float, ...] = ()
    pattern: ClassVar[Pattern] = Pattern.ELEMENTWISE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        types = [t.dtype for t in inputs]
        conditions = types if self.fn in _LOGIC else types[:1] if self.fn is Fn.WHERE else []
        if any(dtype is not DType.BOOL for dtype in conditions):
            raise ValueError("a condition is not boolean")
        common = common_dtype(inputs[1:] if self.fn is Fn.WHERE else inputs)
        dtype = DType.BOOL if self.fn in _COMPARISONS else common
        return TensorType(broadcast([t.shape for t in inputs]), dtype)

    @property
    def label(self) -> str:
        return self.fn.value


@dataclass(frozen=True)
class Cast(Op):
    """Convert to ``dtype``."""

    dtype: DType
    pattern: ClassVar[Pattern] = Pattern.ELEMENTWISE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(inputs[0].shape, self.dtype)
