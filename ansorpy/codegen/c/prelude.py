"""Helper functions of generated C, each emitted only where it is used.

They are C11 and defined for all operands, as specified in :mod:`ansorpy.ir.operators` and
:class:`ansorpy.ir.expr.Cast`.  Their names end with the type: ``floor_div_i32``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import Template

from ansorpy.codegen.c.types import short_name, storage_type
from ansorpy.codegen.clike.operators import float_suffix
from ansorpy.ir.dtypes import DType
from ansorpy.ir.elementary.parts import FORMATS
from ansorpy.ir.expr import BinaryOp, Function

__all__ = ["HELPERS", "Helper", "elementary_name", "saturation", "scaling"]


@dataclass(frozen=True)
class Helper:
    """The C text of a function, and the names of the helpers it calls."""

    text: str
    needs: tuple[str, ...] = ()


_SIGNED = {
    "quotient": ("""\
// Division by 0 gives 0; the least number divided by -1 gives itself.
static inline $T quotient_$S($T a, $T b) {
  return b == 0 ? 0 : b == -1 ? ($T)(0u - ($U)a) : a / b;
}""", ()),
    "rest": ("""\
static inline $T rest_$S($T a, $T b) {
  return b == 0 || b == -1 ? 0 : a % b;
}""", ()),
    "floor_div": ("""\
static inline $T floor_div_$S($T a, $T b) {
  const $T off = rest_$S(a, b);
  return quotient_$S(a, b) - (off != 0 && (off < 0) != (b < 0));
}""", ("quotient", "rest")),
    "floor_mod": ("""\
static inline $T floor_mod_$S($T a, $T b) {
  const $T off = rest_$S(a, b);
  return off != 0 && (off < 0) != (b < 0) ? off + b : off;
}""", ("rest",)),
    "shl": ("""\
// Shifts by as many bits as there are or more, or by a negative number, leave no bit.
static inline $T shl_$S($T a, $T b) {
  return ($U)b < ${B}u ? ($T)(($U)a << b) : 0;
}""", ()),
    "shr": ("""\
static inline $T shr_$S($T a, $T b) {
  return a >> (($U)b < ${B}u ? b : $B - 1);
}""", ()),
    "abs": ("""\
static inline $T abs_$S($T x) {
  return x < 0 ? ($T)(0u - ($U)x) : x;
}""", ()),
}  # fmt: skip
_UNSIGNED = {
    "shl": ("""\
static inline $T shl_$S($T a, $T b) {
  return b < ${B}u ? a << b : 0;
}""", ()),
    "shr": ("""\
static inline $T shr_$S($T a, $T b) {
  return b < ${B}u ? a >> b : 0;
}""", ()),
    "quotient": ("""\
static inline $T quotient_$S($T a, $T b) {
  return b == 0 ? 0 : a / b;
}""", ()),
    "rest": ("""\
static inline $T rest_$S($T a, $T b) {
  return b == 0 ? 0 : a % b;
}""", ()),
}  # fmt: skip
_INTEGER = {
    "max": ("""\
static inline $T max_$S($T a, $T b) {
  return a > b ? a : b;
}""", ()),
    "min": ("""\
static inline $T min_$S($T a, $T b) {
  return a < b ? a : b;
}""", ()),
}  # fmt: skip
_FLOAT = {
    "bits_of": ("""\
static inline $U bits_of_$S($T x) {
  $U bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}""", ()),
    "from_bits": ("""\
static inline $T from_bits_$S($U bits) {
  $T x;
  memcpy(&x, &bits, sizeof x);
  return x;
}""", ()),
    "max": ("""\
// NaN if either operand is NaN.
static inline $T max_$S($T a, $T b) {
  return a > b || a != a ? a : b;
}""", ()),
    "min": ("""\
// NaN if either operand is NaN.
static inline $T min_$S($T a, $T b) {
  return a < b || a != a ? a : b;
}""", ()),
    "floor_mod": ("""\
// The exact remainder, with the sign of the divisor.
static inline $T floor_mod_$S($T a, $T b) {
  const $T off = fmod$F(a, b);
  return off != 0 && (off < 0) != (b < 0) ? off + b : copysign$F(off, b);
}""", ()),
    "floor_div": ("""\
// The whole number (a - floor_mod(a, b)) / b.
static inline $T floor_div_$S($T a, $T b) {
  const $T off = fmod$F(a, b), ratio = a / b;
  const $T near = (a - off) / b - (off != 0 && (off < 0) != (b < 0) ? 1 : 0);
  const $T whole = floor$F(near);
  return b == 0 ? ratio : copysign$F(near - whole > 0.5$F ? whole + 1 : whole, ratio);
}""", ()),
    "scale": ("""\
// y * 2**n for an integer n given as a float, in two steps; only the second can round.
static inline $T scale_$S($T y, $T n) {
  const $U whole = bits_of_$S(n + $rounder) - bits_of_$S($rounder);
  const $U half = ((whole + 4096u) >> 1) - 2048u;
  const $T first = from_bits_$S((half + ${bias}u) << $fraction);
  const $T second = from_bits_$S((whole - half + ${bias}u) << $fraction);
  return n != n ? n : y * first * second;
}""", ("bits_of", "from_bits")),
}  # fmt: skip
_TO_INTEGER = """\
// Rounds towards zero and saturates; NaN gives 0.
static inline $T ${S}_of_$R($X x) {
  if (!(x > $lowest)) return x != x ? 0 : $least;
  return x < $beyond ? ($T)x : $most;
}"""
_PLAIN = {
    "from_f16": Helper("""\
static inline float from_f16(uint16_t x) {
  const uint32_t sign = (uint32_t)(x & 0x8000u) << 16, size = x & 0x7fffu;
  if (size >= 0x7c00u) return from_bits_f32(sign | 0x7f800000u | (size & 0x3ffu) << 13);
  if (size >= 0x400u) return from_bits_f32(sign | ((size << 13) + 0x38000000u));
  return from_bits_f32(sign | bits_of_f32((float)size * 0x1p-24f));
}""", ("bits_of_f32", "from_bits_f32")),
    "to_f16": Helper("""\
// Rounds to nearest, ties to even.
static inline uint16_t to_f16(float x) {
  const uint32_t bits = bits_of_f32(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
  if (size >= 0x47800000u) return (uint16_t)(sign | 0x7c00u);
  if (size < 0x38800000u)
    return (uint16_t)(sign | (bits_of_f32(from_bits_f32(size) + 0.5f) - 0x3f000000u));
  return (uint16_t)(sign | (size + 0xfffu + (size >> 13 & 1u) - 0x38000000u) >> 13);
}""", ("bits_of_f32", "from_bits_f32")),
    "from_bf16": Helper("""\
static inline float from_bf16(uint16_t x) {
  return from_bits_f32((uint32_t)x << 16);
}""", ("from_bits_f32",)),
    "to_bf16": Helper("""\
// Rounds to nearest, ties to even.
static inline uint16_t to_bf16(float x) {
  const uint32_t bits = bits_of_f32(x), rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  return (uint16_t)((x != x ? bits | 0x400000u : rounded) >> 16);
}""", ("bits_of_f32",)),
    "odd_f64": Helper("""\
// Rounds to odd: towards zero, with the last bit set if the result is inexact. Rounding the result
// again to a narrower type then gives the same as rounding x once.
static inline float odd_f64(double x) {
  const float near = (float)x;
  const uint32_t bits = bits_of_f32(near) - (fabs((double)near) > fabs(x));
  return from_bits_f32(bits | ((double)near != x));
}""", ("bits_of_f32", "from_bits_f32")),
    "odd_i64": Helper("""\
// In large numbers, bit 11 stands for the lower bits, which a double cannot hold.
static inline float odd_i64(int64_t x) {
  const uint64_t bits = (uint64_t)x, low = bits & 2047u;
  const uint64_t cut = (bits & ~(uint64_t)2047u) | (low != 0 ? 2048u : 0u);
  const bool is_small = bits + ((uint64_t)1 << 52) < (uint64_t)1 << 53;
  return odd_f64((double)(int64_t)(is_small ? bits : cut));
}""", ("odd_f64",)),
    "odd_u64": Helper("""\
// In large numbers, bit 11 stands for the lower bits, which a double cannot hold.
static inline float odd_u64(uint64_t x) {
  const uint64_t cut = (x & ~(uint64_t)2047u) | ((x & 2047u) != 0 ? 2048u : 0u);
  return odd_f64((double)(x < (uint64_t)1 << 53 ? x : cut));
}""", ("odd_f64",)),
    "word_8": Helper("""\
// The low bytes of four integers, the first in the lowest byte.
static inline uint32_t word_8(int32_t a, int32_t b, int32_t c, int32_t d) {
  const uint32_t low = ((uint32_t)a & 0xffu) | ((uint32_t)b & 0xffu) << 8;
  return low | ((uint32_t)c & 0xffu) << 16 | (uint32_t)d << 24;
}"""),
    "word_bf16": Helper("""\
// Two bfloat16 numbers, the first in the lower half.
static inline uint32_t word_bf16(float a, float b) {
  return to_bf16(a) | (uint32_t)to_bf16(b) << 16;
}""", ("to_bf16",)),
    "dot_s8s8": Helper("""\
// The sum of four products of 8-bit parts.
static inline int32_t dot_s8s8(uint32_t a, uint32_t b) {
  int32_t sum = 0;
  for (int n = 0; n < 32; n += 8) sum += (int8_t)(a >> n) * (int8_t)(b >> n);
  return sum;
}"""),
    "dot_u8s8": Helper("""\
// The sum of four products of 8-bit parts; the parts of a are unsigned.
static inline int32_t dot_u8s8(uint32_t a, uint32_t b) {
  int32_t sum = 0;
  for (int n = 0; n < 32; n += 8) sum += (uint8_t)(a >> n) * (int8_t)(b >> n);
  return sum;
}"""),
    "dot_bf16": Helper("""\
// The sum of two products of bfloat16 parts.
static inline float dot_bf16(uint32_t a, uint32_t b) {
  return from_bits_f32(a << 16) * from_bits_f32(b << 16) +
         from_bits_f32(a & 0xffff0000u) * from_bits_f32(b & 0xffff0000u);
}""", ("from_bits_f32",)),
}  # fmt: skip

_WIDE = (DType.INT32, DType.INT64, DType.UINT32, DType.UINT64)
"""Narrower integers are computed in these types."""
_LIMITS = {
    DType.INT32: ("INT32_MIN", "INT32_MAX"), DType.INT64: ("INT64_MIN", "INT64_MAX"),
    DType.UINT64: ("0", "UINT64_MAX"),
}  # fmt: skip
"""The integer types that floats are converted to first, with their least and largest numbers."""


def _of_type(
    templates: Mapping[str, tuple[str, tuple[str, ...]]], dtype: DType, **more: object
) -> Iterator[tuple[str, Helper]]:
    short, kind = short_name(dtype), storage_type(dtype)
    unsigned = f"uint{dtype.bits}_t"
    for name, (text, needs) in templates.items():
        made = Template(text).substitute(
            more, T=kind, S=short, U=unsigned, B=dtype.bits, F=float_suffix(dtype)
        )
        yield f"{name}_{short}", Helper(made, tuple(f"{other}_{short}" for other in needs))


def scaling(dtype: DType) -> dict[str, object]:
    """What the templates of ``scale`` need to know of a float type."""
    form = FORMATS[dtype]
    rounder = f"0x1.8p{form.fraction}{float_suffix(dtype)}"
    return {"rounder": rounder, "bias": form.bias, "fraction": form.fraction}


def saturation(wanted: DType, source: DType) -> dict[str, object]:
    """The floats between which *source* is converted to *wanted*, and what others become."""
    least, most = _LIMITS[wanted]
    end = f"0x1p{wanted.bits - wanted.is_signed}{float_suffix(source)}"
    lowest = f"-{end}" if wanted.is_signed else f"0.0{float_suffix(source)}"
    return {"beyond": end, "lowest": lowest, "least": least, "most": most}


def _to_integers() -> Iterator[tuple[str, Helper]]:
    for dtype in _LIMITS:
        for real in FORMATS:
            text = Template(_TO_INTEGER).substitute(
                saturation(dtype, real), T=storage_type(dtype), S=short_name(dtype),
                X=storage_type(real), R=short_name(real),
            )  # fmt: skip
            yield f"{short_name(dtype)}_of_{short_name(real)}", Helper(text)


def _all() -> Iterator[tuple[str, Helper]]:
    for dtype in _WIDE:
        yield from _of_type(_SIGNED if dtype.is_signed else _UNSIGNED, dtype)
        yield from _of_type(_INTEGER, dtype)
    for dtype in FORMATS:
        yield from _of_type(_FLOAT, dtype, **scaling(dtype))
    yield from _to_integers()
    yield from _PLAIN.items()


HELPERS: Mapping[str, Helper] = dict(_all())
"""In order of emission: later ones use earlier ones."""


def elementary_name(fn: Function | BinaryOp, dtype: DType) -> str:
    """The name of the C function that computes *fn* of *dtype*."""
    return f"{fn.name.lower()}_{short_name(dtype)}"
