"""The elementwise functions of expressions: names, numbers of operands, types of results."""

from __future__ import annotations

from enum import Enum

from ansorpy.ir.dtypes import DType

__all__ = ["Function"]


class Function(Enum):
    """Elementwise functions, most of one operand (FMA has three: ``a * b + c``).

    ``WORD`` joins the bits of four 8-bit or two 16-bit values into a uint32, the first in the
    lowest bits.
    A ``DOT`` multiplies two words part by part and adds up the products; :mod:`ansorpy.ir.dots`
    defines the types of parts and result.

    The last three are building blocks of approximations (:mod:`ansorpy.ir.elementary`).  ``BITS``
    reinterprets a float as an unsigned integer, ``FROM_BITS`` does the reverse (16 bits are those
    of a float16).
    ``SCALE`` is ``y * 2**n``, rounded once, for finite y and an integer n given as a float whose
    magnitude is at most twice the type's largest exponent (a NaN gives NaN).
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
    BITS = "bits"
    FROM_BITS = "from_bits"
    SCALE = "scale"

    @property
    def arities(self) -> tuple[int, ...]:
        """The numbers of operands that a call may have."""
        return _ARITIES.get(self, (1,))

    def result(self, operand: DType) -> DType:
        """The type of a call whose first operand has type *operand*."""
        if self in (Function.BITS, Function.FROM_BITS):
            return _REINTERPRETED.get(operand, operand)
        return _RESULTS.get(self, operand)

    def accepts(self, operand: DType) -> bool:
        """True when the function is defined on values of type *operand*."""
        return operand in _ACCEPTED[self]


_DOTS = (Function.DOT_U8S8, Function.DOT_S8S8, Function.DOT_BF16)
_ARITIES = {Function.FMA: (3,), Function.WORD: (2, 4)} | dict.fromkeys(
    (*_DOTS, Function.SCALE), (2,)
)
_RESULTS = {
    Function.WORD: DType.UINT32, Function.DOT_U8S8: DType.INT32, Function.DOT_S8S8: DType.INT32,
    Function.DOT_BF16: DType.FLOAT32,
}  # fmt: skip
_WIDTHS = ((DType.FLOAT32, DType.UINT32), (DType.FLOAT64, DType.UINT64))
_REINTERPRETED = dict(_WIDTHS) | {unsigned: real for real, unsigned in _WIDTHS} | {
    DType.FLOAT16: DType.UINT16, DType.BFLOAT16: DType.UINT16, DType.UINT16: DType.FLOAT16,
}  # fmt: skip
_FLOATS = frozenset(dtype for dtype in DType if dtype.is_float)
_NUMBERS = frozenset(dtype for dtype in DType if dtype is not DType.BOOL)
_ACCEPTED = dict.fromkeys(Function, _FLOATS) | {
    Function.NOT: {DType.BOOL},
    **dict.fromkeys((Function.NEG, Function.ABS, Function.FMA), _NUMBERS),
    Function.WORD: {dtype for dtype in _NUMBERS if dtype.bits in (8, 16)},
    **dict.fromkeys(_DOTS, {DType.UINT32}),
    Function.FROM_BITS: {DType.UINT16, *(unsigned for _, unsigned in _WIDTHS)},
    Function.SCALE: {real for real, _ in _WIDTHS},
}
