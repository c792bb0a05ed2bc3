"""Functions of single elements."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

from ansorpy.frontend.torch.sizes import Untranslatable
from ansorpy.frontend.torch.writer import Operand, Value, Writer

__all__ = ["OPERATORS"]


def _unary(kind: str) -> Callable[[Writer, Value], str]:
    def translate(w: Writer, x: Value) -> str:
        return w.op(kind, w.same_type(x))

    return translate


def _binary(kind: str) -> Callable[[Writer, Operand, Operand], str]:
    def translate(w: Writer, a: Operand, b: Operand) -> str:
        return w.op(kind, w.same_type(a), w.same_type(b))

    return translate


def _common(w: Writer, *operands: Operand) -> tuple[torch.dtype, list[str]]:
    """The type in which torch compares *operands*, and these in it."""
    kinds = [torch.empty((1,) * x.rank, dtype=x.dtype, device="meta") if isinstance(x, Value)
             else 1 if not isinstance(x, float) else x for x in operands]  # fmt: skip
    dtype, _ = elementwise_dtypes(
        *kinds, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT
    )
    return dtype, [w.as_type(x, dtype) for x in operands]


def _comparison(kind: str, *, negated: bool = False) -> Callable[[Writer, Operand, Operand], str]:
    def translate(w: Writer, a: Operand, b: Operand) -> str:
        dtype, parts = _common(w, a, b)
        if dtype == torch.bool and kind != "Equal":  # ONNX has no order of booleans
            parts = [w.cast(part, torch.int32) for part in parts]
        found = w.op(kind, *parts)
        return w.op("Not", found) if negated else found

    return translate


def _logical(kind: str) -> Callable[[Writer, Operand, Operand], str]:
    def translate(w: Writer, a: Operand, b: Operand) -> str:
        return w.op(kind, w.as_type(a, torch.bool), w.as_type(b, torch.bool))

    return translate


def _bitwise(on_bools: str, on_ints: str) -> Callable[[Writer, Operand, Operand], str]:
    def translate(w: Writer, a: Operand, b: Operand) -> str:
        return w.op(on_bools if w.dtype == torch.bool else on_ints, w.same_type(a), w.same_type(b))

    return translate


def _not(w: Writer, x: Value) -> str:
    return w.op("Not", w.as_type(x, torch.bool))


def _bitwise_not(w: Writer, x: Value) -> str:
    return w.op("Not" if x.dtype == torch.bool else "BitwiseNot", x)


def _product(w: Writer, kind: str, a: Operand, b: Operand) -> str:
    """A product or quotient; torch does not round a second factor of 16-bit floats that is
    a number."""
    wide = torch.promote_types(w.dtype, torch.float32)
    if w.dtype.is_floating_point and wide != w.dtype and _is_wider(b, w.dtype):
        return w.cast(w.op(kind, _widened(w, a, wide), w.as_type(b, wide)), w.dtype)
    return w.op(kind, w.same_type(a), w.same_type(b))


def _widened(w: Writer, x: Operand, wide: torch.dtype) -> str:
    """*x*, rounded to the type of the result, in the type *wide*."""
    return w.same_type(x) if wide == w.dtype else w.cast(w.same_type(x), wide)


def _is_wider(x: Operand, dtype: torch.dtype) -> bool:
    """Whether *x*, converted to *dtype*, may be another number."""
    if isinstance(x, Value):
        return torch.promote_types(x.dtype, dtype) != dtype
    if isinstance(x, int | float):
        return torch.tensor(x, dtype=torch.float64).to(dtype).item() != x
    return not isinstance(x, str)


def _scaled(w: Writer, x: Operand, factor: float) -> str:
    return w.same_type(x) if factor == 1 else w.op("Mul", w.same_type(x), w.same_type(factor))


def _add(w: Writer, a: Operand, b: Operand, *, alpha: float = 1) -> str:
    if w.dtype == torch.bool:
        return w.op("Or", w.same_type(a), w.same_type(b))
    return w.op("Add", w.same_type(a), _scaled(w, b, alpha))


def _sub(w: Writer, a: Operand, b: Operand, *, alpha: float = 1) -> str:
    return w.op("Sub", w.same_type(a), _scaled(w, b, alpha))


def _rsub(w: Writer, a: Operand, b: Operand, alpha: float = 1) -> str:
    return w.op("Sub", w.same_type(b), _scaled(w, a, alpha))


def _mul(w: Writer, a: Operand, b: Operand) -> str:
    return _product(w, "And" if w.dtype == torch.bool else "Mul", a, b)


def _div(w: Writer, a: Operand, b: Operand, *, rounding_mode: str | None = None) -> str:
    if rounding_mode == "floor":
        return _rounded_down(w, a, b)
    if rounding_mode == "trunc" and w.dtype.is_floating_point:
        return _cut(w, a, b)
    return _product(w, "Div", a, b)


def _cut(w: Writer, a: Operand, b: Operand) -> str:
    """The quotient without its fraction; torch does not round that of a single divisor before."""
    wide = torch.promote_types(w.dtype, torch.float32)
    is_single = not isinstance(b, Value) or all(extent == 1 for extent in b.shape)
    if wide == w.dtype or not is_single:
        return _truncated(w, _product(w, "Div", a, b), w.dtype)
    found = w.op("Div", _widened(w, a, wide), w.as_type(b, wide))
    return w.cast(_truncated(w, found, wide), w.dtype)


def _rounded_down(w: Writer, a: Operand, b: Operand) -> str:
    """The quotient rounded down as if it was exact; ONNX rounds those of integers towards 0."""
    is_float = w.dtype.is_floating_point
    dtype = torch.promote_types(w.dtype, torch.float32) if is_float else w.dtype
    if is_float and _is_power_of_2(b, dtype):
        a = _widened(w, a, dtype)  # only quotients that underflow are not exact
        found = w.op("Floor", w.op("Div", a, w.as_type(b, dtype)))
        found = w.op("Where", w.op("IsInf", a), w.as_type(math.nan, dtype), found)
        return found if dtype == w.dtype else w.cast(found, w.dtype)
    a, b, zero = _widened(w, a, dtype), w.as_type(b, dtype), w.as_type(0, dtype)
    rest = w.op("Mod", a, b, fmod=1)
    one_less = w.cast(_has_other_sign(w, rest, b, zero), dtype)
    if not is_float:
        return w.op("Sub", w.op("Div", a, b), one_less)
    near = w.op("Sub", w.op("Div", w.op("Sub", a, rest), b), one_less)
    found = w.op("Where", w.op("Equal", b, zero), w.op("Div", a, b), w.op("Round", near))
    return found if dtype == w.dtype else w.cast(found, w.dtype)


def _is_power_of_2(x: Operand, dtype: torch.dtype) -> bool:
    """Whether *x* is a number, and in *dtype* a power of two or the negative of one."""
    if not isinstance(x, int | float) or _is_wider(x, dtype):
        return False
    return abs(math.frexp(x)[0]) == 0.5


def _has_other_sign(w: Writer, rest: str, divisor: str, zero: str) -> str:
    """Whether *rest* is on the other side of 0 than *divisor*."""
    differs = w.op("Xor", w.op("Less", rest, zero), w.op("Less", divisor, zero))
    return w.op("And", differs, w.op("Not", w.op("Equal", rest, zero)))


def _truncated(w: Writer, x: str, dtype: torch.dtype) -> str:
    return w.op("Where", w.op("Less", x, w.as_type(0, dtype)), w.op("Ceil", x), w.op("Floor", x))


def _rounding(kind: str) -> Callable[[Writer, Value], str]:
    def translate(w: Writer, x: Value) -> str:
        return w.op(kind, x) if x.dtype.is_floating_point else w.op("Identity", x)

    return translate


def _trunc(w: Writer, x: Value) -> str:
    return _truncated(w, x.name, x.dtype) if x.dtype.is_floating_point else w.op("Identity", x)


def _fmod(w: Writer, a: Operand, b: Operand) -> str:
    return w.op("Mod", w.same_type(a), w.same_type(b), fmod=1)


def _remainder(w: Writer, a: Operand, b: Operand) -> str:
    """The remainder with the sign of the divisor."""
    a, b = w.same_type(a), w.same_type(b)
    if not w.dtype.is_floating_point:
        return w.op("Mod", a, b)
    rest = w.op("Mod", a, b, fmod=1)
    shifted = _has_other_sign(w, rest, b, w.same_type(0))
    return w.op("Where", shifted, w.op("Add", rest, b), rest)


def _pow(w: Writer, a: Operand, b: Operand) -> str:
    if b in (0.5, 2) and not isinstance(b, Value) and w.dtype.is_floating_point:
        x = w.same_type(a)
        return w.op("Mul", x, x) if b == 2 else w.op("Sqrt", x)
    return w.op("Pow", w.same_type(a), w.same_type(b))


def _sign(w: Writer, x: Value) -> str:
    """The sign of NaN is 0."""
    found = w.op("Sign", x)
    if not x.dtype.is_floating_point:
        return found
    return w.op("Where", w.op("IsNaN", x), w.same_type(0), found)


def _rsqrt(w: Writer, x: Value) -> str:
    return w.op("Reciprocal", w.op("Sqrt", w.same_type(x)))


def _log_to(base: float) -> Callable[[Writer, Value], str]:
    """The logarithm to *base*, which is a whole number for powers of it, as in torch."""

    def translate(w: Writer, x: Value) -> str:
        double = torch.float64
        value = w.as_type(x, double)
        found = w.op("Mul", w.op("Log", value), w.as_type(1 / math.log(base), double))
        if w.dtype != double:
            return w.cast(found, w.dtype)
        whole = w.op("Round", found)
        is_whole = w.op("Equal", w.op("Pow", w.as_type(base, double), whole), value)
        return w.op("Where", is_whole, whole, found)

    return translate


def _expm1(w: Writer, x: Value) -> str:
    """``(exp(x) + 1) * tanh(x / 2)``, which loses no digits near 0."""
    value, one = w.same_type(x), w.same_type(1)
    half = w.op("Tanh", w.op("Mul", value, w.same_type(0.5)))
    product = w.op("Mul", w.op("Add", w.op("Exp", value), one), half)
    # Where the exponential overflows or vanishes, so does the difference to 1.
    return w.op("Where", w.op("Less", value, w.same_type(1)), product,
                w.op("Sub", w.op("Exp", value), one))  # fmt: skip


def _log1p(w: Writer, x: Value) -> str:
    """``log(1 + x)``; the rounding of the sum is made good near 0."""
    value, one = w.same_type(x), w.same_type(1)
    total = w.op("Add", value, one)
    log, rest = w.op("Log", total), w.op("Sub", total, one)
    is_small = w.op("Equal", rest, w.same_type(0))
    is_large = w.op("Greater", w.op("Abs", value), one)
    near = w.op("Mul", log, w.op("Div", value, w.op("Where", is_small, one, rest)))
    return w.op("Where", is_small, value, w.op("Where", is_large, log, near))


def _test(kind: str) -> Callable[[Writer, Value], str]:
    """A test that no integer passes."""

    def translate(w: Writer, x: Value) -> str:
        if not x.dtype.is_floating_point:
            return w.expand(w.constant(np.asarray(False)), x.shape)
        return w.op(kind, x)

    return translate


def _gelu(w: Writer, x: Value, *, approximate: str = "none") -> str:
    return w.op("Gelu", x, approximate=approximate)


def _elu(
    w: Writer, x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0
) -> str:
    if input_scale != 1:
        raise Untranslatable(f"input_scale={input_scale}")
    return _scaled(w, w.op("Elu", x, alpha=float(alpha)), scale)


def _leaky_relu(w: Writer, x: Value, negative_slope: float = 0.01) -> str:
    return w.op("LeakyRelu", x, alpha=float(negative_slope))


def _clamp(w: Writer, x: Value, low: Operand | None = None, high: Operand | None = None) -> str:
    value = w.same_type(x)
    if low == 0 and not isinstance(low, Value) and w.dtype.is_floating_point:
        value, low = w.op("Relu", value), None
    if low is not None:
        value = w.op("Max", value, w.same_type(low))
    return value if high is None else w.op("Min", value, w.same_type(high))


def _hardtanh(w: Writer, x: Value, low: float = -1.0, high: float = 1.0) -> str:
    return _clamp(w, x, low, high)


def _where(w: Writer, condition: Value, a: Operand, b: Operand) -> str:
    return w.op("Where", w.as_type(condition, torch.bool), w.same_type(a), w.same_type(b))


def _masked_fill(w: Writer, x: Value, mask: Value, value: Operand) -> str:
    return _where(w, mask, value, x)


def _to_copy(w: Writer, x: Value, *, dtype: torch.dtype | None = None, **kept: object) -> str:
    """Where the elements are and in which order they are stored does not matter here."""
    if x.dtype.is_floating_point and w.dtype == torch.uint8:
        return w.cast(w.cast(x, torch.int64), w.dtype)  # torch wraps negative numbers
    return w.op("Identity", x) if x.dtype == w.dtype else w.cast(x, w.dtype)


def _atan2(w: Writer, y: Operand, x: Operand) -> str:
    """The angle of (x, y): that of (abs(x), y), mirrored if x is negative, be it -0."""
    y, x = w.same_type(y), w.same_type(x)
    zero, width = w.same_type(0), w.op("Abs", x)

    def is_negative(value: str) -> str:
        below = w.op("Less", w.op("Reciprocal", value), zero)
        return w.op("Or", below, w.op("Less", value, zero))

    # Two zeros, or two infinities, have no quotient.
    are_equal = w.op("Equal", w.op("Abs", y), width)
    angle = w.op("Atan", w.op("Where", are_equal, w.op("Sign", y), w.op("Div", y, width)))
    turn = w.op("Where", is_negative(y), w.same_type(-math.pi), w.same_type(math.pi))
    return w.op("Where", is_negative(x), w.op("Sub", turn, angle), angle)


_UNARY = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh",
    "atan": "Atan", "atanh": "Atanh", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp",
    "log": "Log", "mish": "Mish", "neg": "Neg",
    "reciprocal": "Reciprocal", "relu": "Relu", "sigmoid": "Sigmoid",
    "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip
_ROUNDED = {"ceil": "Ceil", "floor": "Floor", "round": "Round"}
_COMPARED = {
    "eq": ("Equal", False), "ne": ("Equal", True), "lt": ("Less", False),
    "le": ("LessOrEqual", False), "gt": ("Greater", False), "ge": ("GreaterOrEqual", False),
}  # fmt: skip
_ARITHMETIC = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "fmod": _fmod, "remainder": _remainder,
    "bitwise_and": _bitwise("And", "BitwiseAnd"), "bitwise_or": _bitwise("Or", "BitwiseOr"),
    "bitwise_xor": _bitwise("Xor", "BitwiseXor"),
}  # fmt: skip

OPERATORS: dict[str, Callable[..., str]] = {
    **{f"{name}.default": _unary(kind) for name, kind in _UNARY.items()},
    **{f"{name}.default": _rounding(kind) for name, kind in _ROUNDED.items()},
    **{
        f"{name}.{form}": _comparison(kind, negated=negated)
        for name, (kind, negated) in _COMPARED.items()
        for form in ("Tensor", "Scalar")
    },
    **{
        f"{name}.{form}": function
        for name, function in _ARITHMETIC.items()
        for form in ("Tensor", "Scalar")
    },
    **{f"{name}.default": _logical(kind)
       for name, kind in {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}.items()},
    **{f"pow.{form}": _pow for form in ("Tensor_Tensor", "Tensor_Scalar", "Scalar")},
    **{f"clamp.{form}": _clamp for form in ("default", "Tensor")},
    **{f"where.{form}": _where for form in ("self", "Scalar", "ScalarOther", "ScalarSelf")},
    **{f"masked_fill.{form}": _masked_fill for form in ("Scalar", "Tensor")},
    "_to_copy.default": _to_copy,
    "atan2.default": _atan2,
    "bitwise_not.default": _bitwise_not,
    "clamp_max.default": lambda w, x, high: _clamp(w, x, None, high),
    "clamp_min.default": _clamp,
    "div.Tensor_mode": _div,
    "elu.default": _elu,
    "expm1.default": _expm1,
    "gelu.default": _gelu,
    "hardtanh.default": _hardtanh,
    "isinf.default": _test("IsInf"),
    "isnan.default": _test("IsNaN"),
    "leaky_relu.default": _leaky_relu,
    "log10.default": _log_to(10),
    "log1p.default": _log1p,
    "log2.default": _log_to(2),
    "logical_not.default": _not,
    "maximum.default": _binary("Max"),
    "minimum.default": _binary("Min"),
    "prims.convert_element_type.default": lambda w, x, dtype: _to_copy(w, x, dtype=dtype),
    "rsqrt.default": _rsqrt,
    "rsub.Scalar": _rsub,
    "rsub.Tensor": _rsub,
    "sign.default": _sign,
    "trunc.default": _trunc,
}  # fmt: skip
"""Translations by the operator's name and overload."""
