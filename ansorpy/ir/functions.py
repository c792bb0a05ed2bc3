"""The elementwise functions of expressions: names, numbers of operands, types of results."""

from __future__ import annotations

from enum import Enum

from ansorpy.ir.dtypes import DType

__all__ = ["Function"]


class Function(Enum):
    """Elementwise functions of one operand (FMA has three: ``a * b + c``).

    ``WORD`` joins the bits of four 8-bit or two 16-bit values into a uint32, the first lowest.
    A ``DOT`` multiplies two words part by part and adds up the products; :mod:`ansorpy.ir.dots`
    says which parts and what result.
    """

    NEG = "neg"
    NOT = "not"
    ABS = "abs"
    EXP = "exp"
    LOG = "log"
    SQRT = "sqrt"
    RSQRT = "rsqrt"
    TANH = "tanh"
    ERF = "erf"
    SIN = "sin"
    COS = "cos"
    FLOOR = "floor"
    CEIL = "ceil"
    ROUND = "round"
    FMA = "fma"
    WORD = "word"
    DOT_U8S8 = "dot_u8s8"
    DOT_S8S8 = "dot_s8s8"
    DOT_BF16 = "dot_bf16"

    @property
    def arities(self) -> tuple[int, ...]:
        """How many operands a call may have."""
        return _ARITIES.get(self, (1,))

    @property
    def result(self) -> DType | None:
        """The type of every call; None when it is the first operand's."""
        return _RESULTS.get(self)


_DOTS = (Function.DOT_U8S8, Function.DOT_S8S8, Function.DOT_BF16)
_ARITIES = {Function.FMA: (3,), Function.WORD: (2, 4)} | dict.fromkeys(_DOTS, (2,))
_RESULTS = {
    Function.WORD: DType.UINT32, Function.DOT_U8S8: DType.INT32, Function.DOT_S8S8: DType.INT32,
    Function.DOT_BF16: DType.FLOAT32,
}  # fmt: skip
