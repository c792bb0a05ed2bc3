"""exp, log, tanh, erf, sin, cos and pow of float32, as straight vector code.

Each docstring states the largest error measured over the whole range against float64
(``tests/codegen/llvm/sweep.py``).  NaN gives NaN, infinities give their limits, denormal
arguments and results are exact to the stated error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ansorpy.codegen.llvm.arithmetic import (
    FLOAT_BINARY,
    call,
    choose,
    compare_values,
    fma,
    number,
    op,
)
from ansorpy.codegen.llvm.conversions import bitcast
from ansorpy.codegen.llvm.text import Value
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import BinaryOp, CompareOp

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emitter import Emitter

__all__ = ["cos", "erf", "exp", "log", "power", "sin", "tanh"]

_LOG2_E = 1.44269504088896341
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4  # the first has 9 bits, so products are exact
_ROUND = 12582912.0  # 1.5 * 2**23: adding it leaves the nearest integer in the low bits
_ROUND_BITS = 0x4B400000


def _polynomial(e: Emitter, x: Value, coefficients: Sequence[float]) -> Value:
    """Horner's scheme, highest power first."""
    total = number(coefficients[0], x)
    for coefficient in coefficients[1:]:
        total = fma(e, total, x, number(coefficient, x))
    return total


def _integer(value: int, element: str = "i32") -> Value:
    return Value(element, str(value), 0, 0)


def _less(e: Emitter, a: Value, b: Value) -> Value:
    return compare_values(e, CompareOp.LT, DType.FLOAT32, a, b)


def _clamped(e: Emitter, x: Value, low: float, high: float) -> Value:
    """*x* within the limits; a NaN stays one."""
    x = FLOAT_BINARY[BinaryOp.MIN](e, x, number(high, x))
    return FLOAT_BINARY[BinaryOp.MAX](e, x, number(low, x))


def _power_of_two(e: Emitter, n: Value) -> Value:
    """2.0 ** n for an integer n in -126 .. 127, by writing the exponent."""
    return bitcast(e, op(e, "shl", op(e, "add", n, _integer(127)), _integer(23)), "float")


def _scaled(e: Emitter, y: Value, shifted: Value, rounded: Value) -> Value:
    """``y * 2**n``; *rounded* is n, *shifted* n + 1.5 * 2**23.

    In two steps so that denormal results and overflow come out right, where no instruction
    does it in one.
    """
    instruction = _SCALE.get(y.lanes)
    if instruction is not None and {"avx512f", "avx512vl"} <= e.module.target.feature_set:
        return _scaled_at_once(e, instruction, y, rounded)
    n = op(e, "sub", bitcast(e, shifted, "i32"), _integer(_ROUND_BITS))
    half = op(e, "ashr", n, _integer(1))
    y = op(e, "fmul", y, _power_of_two(e, half))
    return op(e, "fmul", y, _power_of_two(e, op(e, "sub", n, half)))


_SCALE = {16: ("512", "i16", ", i32 4"), 8: ("256", "i8", ""), 4: ("128", "i8", "")}


def _scaled_at_once(e: Emitter, form: tuple[str, str, str], y: Value, n: Value) -> Value:
    """AVX-512 ``vscalefps``; the last operand rounds as the processor is set to."""
    bits, mask, rounding = form
    kinds = f"{y.type}, {y.type}, {y.type}, {mask}{', i32' if rounding else ''}"
    name = e.module.declare(f"llvm.x86.avx512.mask.scalef.ps.{bits}", y.type, kinds)
    operands = f"{y.typed}, {n.typed}, {y.type} zeroinitializer, {mask} -1{rounding}"
    return e.text.value("float", y.lanes, f"call {y.type} @{name}({operands})")


def exp(e: Emitter, x: Value) -> Value:
    """e ** x, 1.1 ULP: reduced by multiples of ln 2, a polynomial of degree 7 (Cephes expf)."""
    x = _clamped(e, x, -104.0, 89.0)
    shifted = fma(e, x, number(_LOG2_E, x), number(_ROUND, x))
    rounded = op(e, "fsub", shifted, number(_ROUND, x))
    r = fma(e, rounded, number(-_LN2_HIGH, x), x)
    r = fma(e, rounded, number(-_LN2_LOW, x), r)
    p = _polynomial(e, r, _EXP)
    y = op(e, "fadd", fma(e, p, op(e, "fmul", r, r), r), number(1.0, x))
    return _scaled(e, y, shifted, rounded)


_EXP = (
    1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
    5.0000001201e-1,
)  # fmt: skip


def log(e: Emitter, x: Value) -> Value:
    """Natural logarithm, 1 ULP; -inf at 0, NaN below (Cephes logf)."""
    one = number(1.0, x)
    tiny = _less(e, x, number(2.0**-126, x))
    scaled = choose(e, tiny, op(e, "fmul", x, number(2.0**23, x)), x)
    m, exponent = _mantissa(e, scaled)
    lift = choose(e, tiny, number(-23.0, x), number(0.0, x))
    exponent = op(e, "fadd", exponent, lift)
    r = op(e, "fsub", m, one)
    square = op(e, "fmul", r, r)
    y = op(e, "fmul", op(e, "fmul", _polynomial(e, r, _LOG), r), square)
    y = fma(e, exponent, number(_LN2_LOW, x), y)
    y = fma(e, square, number(-0.5, x), y)
    y = fma(e, exponent, number(_LN2_HIGH, x), op(e, "fadd", r, y))
    return _log_limits(e, x, y)


_LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip


def _mantissa(e: Emitter, x: Value) -> tuple[Value, Value]:
    """``m, n`` with ``x == m * 2**n`` and m in ``sqrt(1/2) .. sqrt(2)``, for normal x > 0."""
    bits = bitcast(e, x, "i32")
    shifted = op(e, "sub", bits, _integer(0x3F3504F3))  # the bits of sqrt(1/2)
    n = op(e, "ashr", shifted, _integer(23))
    m = bitcast(e, op(e, "sub", bits, op(e, "shl", n, _integer(23))), "float")
    exponent = e.text.value("float", n.lanes, f"sitofp {n.typed} to {m.type}")
    return m, exponent


def _log_limits(e: Emitter, x: Value, y: Value) -> Value:
    infinite = number(float("inf"), x)
    y = choose(e, compare_values(e, CompareOp.EQ, DType.FLOAT32, x, infinite), x, y)
    zero = number(0.0, x)
    y = choose(e, _equal(e, x, 0.0), number(-float("inf"), x), y)
    valid = compare_values(e, CompareOp.GE, DType.FLOAT32, x, zero)
    return choose(e, valid, y, number(float("nan"), x))


def tanh(e: Emitter, x: Value) -> Value:
    """Hyperbolic tangent, 4.5 ULP: a rational approximation on |x| < 7.9 (as in Eigen)."""
    clamped = _clamped(e, x, -7.90531110763549805, 7.90531110763549805)
    square = op(e, "fmul", clamped, clamped)
    above = op(e, "fmul", clamped, _polynomial(e, square, _TANH_ABOVE))
    y = op(e, "fdiv", above, _polynomial(e, square, _TANH_BELOW))
    small = _less(e, call(e, "fabs", x), number(0.0004, x))
    return choose(e, small, x, y)


_TANH_ABOVE = (
    -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
    1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03,
)  # fmt: skip
_TANH_BELOW = (
    1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03,
)  # fmt: skip


def erf(e: Emitter, x: Value) -> Value:
    """Error function, 5.6 ULP: a rational approximation on |x| < 4 (as in Eigen)."""
    clamped = _clamped(e, x, -4.0, 4.0)
    square = op(e, "fmul", clamped, clamped)
    above = op(e, "fmul", clamped, _polynomial(e, square, _ERF_ABOVE))
    y = op(e, "fdiv", above, _polynomial(e, square, _ERF_BELOW))
    small = _less(e, call(e, "fabs", x), number(1e-4, x))
    return choose(e, small, op(e, "fmul", x, number(1.1283791670955126, x)), y)


_ERF_ABOVE = (
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
    -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
)  # fmt: skip
_ERF_BELOW = (
    -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
    -1.42647390514189e-02,
)  # fmt: skip


def sin(e: Emitter, x: Value) -> Value:
    """Sine, 1.6 ULP for |x| <= 2**30; the argument is reduced in float64."""
    return _circular(e, x, 0)


def cos(e: Emitter, x: Value) -> Value:
    """Cosine, 1.6 ULP for |x| <= 2**30; the argument is reduced in float64."""
    return _circular(e, x, 1)


_TWO_OVER_PI = 0.63661977236758134308
_HALF_PI_HIGH, _HALF_PI_LOW = 1.57079632679489655800, 6.12323399573676603587e-17
_ROUND_DOUBLE = 6755399441055744.0  # 1.5 * 2**52


def _circular(e: Emitter, x: Value, quarter: int) -> Value:
    """sin(x + quarter * pi / 2) through the remainder of x by pi / 2 and its quadrant."""
    wide = _extended(e, x)
    shifted = fma(e, wide, number(_TWO_OVER_PI, wide), number(_ROUND_DOUBLE, wide))
    quadrant = bitcast(e, shifted, "i64")
    n = op(e, "fsub", shifted, number(_ROUND_DOUBLE, wide))
    r = fma(e, n, number(-_HALF_PI_HIGH, wide), wide)
    r = fma(e, n, number(-_HALF_PI_LOW, wide), r)
    quadrant = _narrow_integer(e, op(e, "add", quadrant, _integer(quarter, "i64")))
    r = _narrowed(e, r)
    square = op(e, "fmul", r, r)
    sine = fma(e, op(e, "fmul", _polynomial(e, square, _SIN), square), r, r)
    cosine = op(e, "fmul", op(e, "fmul", _polynomial(e, square, _COS), square), square)
    cosine = op(e, "fadd", fma(e, square, number(-0.5, r), cosine), number(1.0, r))
    y = choose(e, _bit(e, quadrant, 1), cosine, sine)
    negative = e.text.value("float", y.lanes, f"fneg {y.type} {y.text}")
    return choose(e, _bit(e, quadrant, 2), negative, y)


_SIN = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)


def _bit(e: Emitter, n: Value, mask: int) -> Value:
    masked = op(e, "and", n, _integer(mask))
    return compare_values(e, CompareOp.NE, DType.INT32, masked, _integer(0))


def _extended(e: Emitter, x: Value) -> Value:
    wide = Value("double", "", x.lanes).type
    return e.text.value("double", x.lanes, f"fpext {x.typed} to {wide}")


def _narrowed(e: Emitter, x: Value) -> Value:
    single = Value("float", "", x.lanes).type
    return e.text.value("float", x.lanes, f"fptrunc {x.typed} to {single}")


def _narrow_integer(e: Emitter, x: Value) -> Value:
    single = Value("i32", "", x.lanes).type
    return e.text.value("i32", x.lanes, f"trunc {x.typed} to {single}")


def power(e: Emitter, x: Value, y: Value) -> Value:
    """``x ** y`` with C's special cases, 1 ULP: logarithm and exponential in float64."""
    x, y = e.unified(x, y)
    magnitude = call(e, "fabs", x)
    result = _exp2_double(e, op(e, "fmul", _extended(e, y), _log2_double(e, magnitude)))
    result = _narrowed(e, result)
    return _power_cases(e, x, y, magnitude, result)


def _log2_double(e: Emitter, x: Value) -> Value:
    """Binary logarithm of a float32 x >= 0, about 48 bits; -inf at 0."""
    wide = _extended(e, x)
    bits = bitcast(e, wide, "i64")
    shifted = op(e, "sub", bits, _integer(0x3FE6A09E667F3BCD, "i64"))  # sqrt(1/2)
    n = op(e, "ashr", shifted, _integer(52, "i64"))
    m = bitcast(e, op(e, "sub", bits, op(e, "shl", n, _integer(52, "i64"))), "double")
    exponent = e.text.value("double", n.lanes, f"sitofp {n.typed} to {m.type}")
    one = number(1.0, wide)
    s = op(e, "fdiv", op(e, "fsub", m, one), op(e, "fadd", m, one))
    series = _polynomial(e, op(e, "fmul", s, s), [2 / k for k in range(17, 0, -2)])
    y = fma(e, op(e, "fmul", s, series), number(_LOG2_E, wide), exponent)
    y = choose(e, _equal(e, wide, 0.0), number(-float("inf"), wide), y)
    return choose(e, _less(e, wide, number(float("inf"), wide)), y, wide)


def _exp2_double(e: Emitter, t: Value) -> Value:
    """2.0 ** t in double, of a t whose result is to be a float32."""
    t = _clamped(e, t, -160.0, 130.0)
    shifted = op(e, "fadd", t, number(_ROUND_DOUBLE, t))
    n = op(e, "sub", bitcast(e, shifted, "i64"), _integer(0x4338000000000000, "i64"))
    r = op(e, "fsub", t, op(e, "fsub", shifted, number(_ROUND_DOUBLE, t)))
    r = op(e, "fmul", r, number(0.69314718055994530942, t))
    y = _polynomial(e, r, _EXP_SERIES)
    biased = op(e, "shl", op(e, "add", n, _integer(1023, "i64")), _integer(52, "i64"))
    return op(e, "fmul", y, bitcast(e, biased, "double"))


_EXP_SERIES = (
    1 / 39916800, 1 / 3628800, 1 / 362880, 1 / 40320, 1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6,
    1 / 2, 1.0, 1.0,
)  # fmt: skip


def _equal(e: Emitter, x: Value, value: float) -> Value:
    return compare_values(e, CompareOp.EQ, DType.FLOAT32, x, number(value, x))


def _power_cases(e: Emitter, x: Value, y: Value, magnitude: Value, result: Value) -> Value:
    """Signs and the exceptional operands, as C99 defines ``pow``."""
    nan, one = number(float("nan"), x), number(1.0, x)
    whole = compare_values(e, CompareOp.EQ, DType.FLOAT32, call(e, "floor", y), y)
    half = op(e, "fmul", y, number(0.5, y))
    even = compare_values(e, CompareOp.EQ, DType.FLOAT32, call(e, "floor", half), half)
    odd = op(e, "and", whole, e.negation(even))
    signed = call(e, "copysign", result, x)
    result = choose(e, odd, signed, result)
    finite = _less(e, magnitude, number(float("inf"), x))
    bad = op(e, "and", op(e, "and", _less(e, x, number(0.0, x)), finite), e.negation(whole))
    result = choose(e, bad, nan, result)
    unordered = e.text.value("i1", x.lanes, f"fcmp uno {x.type} {x.text}, {y.text}")
    result = choose(e, unordered, nan, result)
    trivial = op(e, "or", _equal(e, x, 1.0), _equal(e, y, 0.0))
    unit_minus = op(e, "and", _equal(e, x, -1.0), _equal(e, call(e, "fabs", y), float("inf")))
    return choose(e, op(e, "or", trivial, unit_minus), one, result)
