"""Helper functions for generated CUDA C that CUDA C lacks, each emitted only where used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansorpy.codegen.cuda.emit.boxes import BOX_HELPERS, BOX_NEEDS
from ansorpy.codegen.cuda.emit.mma import MMA_HELPERS, MMA_NEEDS
from ansorpy.codegen.cuda.emit.quads import QUAD_HELPERS, QUAD_NEEDS
from ansorpy.codegen.cuda.emit.wgmma import WGMMA_HELPERS, WGMMA_NEEDS

__all__ = ["HELPERS", "prelude"]

_INLINE = "__device__ __forceinline__"

_DIVISION = f"""\
// Quotients and remainders by 0 are 0; the least number divided by -1 is itself.
template <typename T> {_INLINE} bool divides_all(T b) {{
  return b != 0 && (b != T(-1) || T(-1) > T(0));
}}
template <typename T> {_INLINE} T quotient(T a, T b) {{
  return divides_all(b) ? a / b : (T)((unsigned long long)a * (unsigned long long)b);
}}
template <typename T> {_INLINE} T rest(T a, T b) {{
  return divides_all(b) ? a % b : 0;
}}
// Division that rounds down, as for quotients of indices.
template <typename T> {_INLINE} T floor_div(T a, T b) {{
  const T off = rest(a, b);
  return quotient(a, b) - (off != 0 && (off < 0) != (b < 0));
}}
template <typename T> {_INLINE} T floor_mod(T a, T b) {{
  const T off = rest(a, b);
  return off != 0 && (off < 0) != (b < 0) ? off + b : off;
}}"""

_SHIFTS = f"""\
// Shifts by as many bits as there are or more, or by a negative number, leave no bit.
template <typename T> {_INLINE} bool leaves_bits(T distance) {{
  return (unsigned long long)distance < sizeof(T) * 8;
}}
template <typename T> {_INLINE} T shift_left(T a, T b) {{
  return leaves_bits(b) ? (T)((unsigned long long)a << b) : T(0);
}}
template <typename T> {_INLINE} T shift_right(T a, T b) {{
  return leaves_bits(b) ? (T)(a >> b) : a < T(0) ? T(-1) : T(0);
}}"""

_FLOAT_DIVISION = f"""\
// Exact remainders with the sign of the divisor, and the matching quotients.
template <typename T> {_INLINE} bool opposed(T off, T b) {{
  return off != 0 && (off < 0) != (b < 0);
}}
template <typename T> {_INLINE} T float_mod(T a, T b) {{
  const T off = fmod(a, b);
  return opposed(off, b) ? off + b : copysign(off, b);
}}
template <typename T> {_INLINE} T float_div(T a, T b) {{
  const T off = fmod(a, b), ratio = a / b;
  const T near = (a - off) / b - (opposed(off, b) ? T(1) : T(0)), whole = floor(near);
  return b == 0 ? ratio : copysign(near - whole > T(0.5) ? whole + T(1) : whole, ratio);
}}"""

_INTEGERS = "\n".join(
    ["// Rounds towards zero and saturates; NaN gives 0."]
    + [
        f"{_INLINE} {integer} {name}({real} x) {{\n"
        f"  return x != x ? 0 : __{real}2{short}_rz(x);\n}}"
        for name, integer, short in (
            ("to_int", "int", "int"),
            ("to_long", "long long", "ll"),
            ("to_unsigned_long", "unsigned long long", "ull"),
        )
        for real in ("float", "double")
    ]
)

_EXTREMA = f"""\
// NaN if either operand is NaN.
template <typename T> {_INLINE} T maximum(T a, T b) {{
  return a > b || a != a ? a : b;
}}
template <typename T> {_INLINE} T minimum(T a, T b) {{
  return a < b || a != a ? a : b;
}}
#if __CUDA_ARCH__ >= 800
template <> {_INLINE} float maximum(float a, float b) {{
  float c;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
}}
template <> {_INLINE} float minimum(float a, float b) {{
  float c;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
}}
#endif"""

_VEC = f"""\
// N neighbouring elements moved at once; their address is a multiple of their total size.
template <typename T, int N> struct alignas(sizeof(T) * N) Vec {{
  T at[N];
}};
template <int N, typename T> {_INLINE} Vec<T, N>& vec(T* first) {{
  return *reinterpret_cast<Vec<T, N>*>(first);
}}
template <int N, typename T> {_INLINE} const Vec<T, N>& vec(const T* first) {{
  return *reinterpret_cast<const Vec<T, N>*>(first);
}}"""

_TURNED = f"""\
// Four neighbouring bytes; their address is a multiple of four.
template <typename T> {_INLINE} unsigned word_at(const T* at) {{
  return *reinterpret_cast<const unsigned*>(at);
}}
// Transposes bytes: four columns of rows of four.
template <int N> {_INLINE} void turned(
    Vec<unsigned, N> (&columns)[4], const unsigned (&rows)[4 * N]) {{
  #pragma unroll
  for (int n = 0; n < N; ++n) {{
    #pragma unroll
    for (int half = 0; half < 2; ++half) {{
      const unsigned pairs = half ? 0x7362 : 0x5140;
      const unsigned upper = __byte_perm(rows[4 * n], rows[4 * n + 1], pairs);
      const unsigned lower = __byte_perm(rows[4 * n + 2], rows[4 * n + 3], pairs);
      columns[2 * half].at[n] = __byte_perm(upper, lower, 0x5410);
      columns[2 * half + 1].at[n] = __byte_perm(upper, lower, 0x7632);
    }}
  }}
}}"""

_FLOAT16 = f"""\
// Stored in 16 bits, computed in float.
struct float16 {{
  unsigned short bits;
}};
{_INLINE} float to_float(float16 x) {{
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return wide;
}}
{_INLINE} float16 to_float16(float x) {{
  float16 narrow;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(x));
  return narrow;
}}"""

_BFLOAT16 = f"""\
// The upper half of a float, rounded to nearest even.
struct bfloat16 {{
  unsigned short bits;
}};
{_INLINE} float to_float(bfloat16 x) {{
  return __uint_as_float((unsigned)x.bits << 16);
}}
{_INLINE} bfloat16 to_bfloat16(float x) {{
  bfloat16 narrow;
#if __CUDA_ARCH__ >= 800
  unsigned both;  // the conversion of two floats at once is the fast one
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(0.0f), "f"(x));
  narrow.bits = (unsigned short)both;
#else
  const unsigned bits = __float_as_uint(x);
  const unsigned rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  narrow.bits = (unsigned short)((x != x ? bits | 0x400000u : rounded) >> 16);
#endif
  return narrow;
}}"""

_POWER_OF_TWO = f"""\
// 2^x to 22 bits; results below the least normal float may be 0.
template <bool Flush> {_INLINE} float power_of_two(float x) {{
#if __CUDA_ARCH__ >= 750
  float y;
  if constexpr (Flush) {{
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  }} else {{
    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  }}
  return y;
#else
  return exp2f(x);
#endif
}}"""

_ODD = "\n".join(
    [
        "// Rounds to odd: towards zero, with the last bit set if the result is inexact. Rounding",
        "// the result again to a narrower type then gives the same as rounding x once.",
        f"template <typename T> {_INLINE} float odd(T x, float cut) {{",
        "  return __uint_as_float(__float_as_uint(cut) | (unsigned)((T)cut != x));",
        "}",
    ]
    + [
        f"{_INLINE} float to_odd({kind} x) {{ return odd(x, __{short}2float_rz(x)); }}"
        for kind, short in (
            ("double", "double"), ("int", "int"), ("unsigned", "uint"), ("long long", "ll"),
            ("unsigned long long", "ull"),
        )
    ]
)  # fmt: skip

_WORD = f"""\
// The bits of parts in one word, the first in the lowest bits.
{_INLINE} unsigned word(int a, int b, int c, int d) {{
  return (a & 0xffu) | (b & 0xffu) << 8 | (c & 0xffu) << 16 | (d & 0xffu) << 24;
}}
{_INLINE} unsigned word(float a, float b) {{
  return (unsigned)to_bfloat16(a).bits | (unsigned)to_bfloat16(b).bits << 16;
}}"""

_DOT_S8S8 = f"""\
// The sum of four products of 8-bit parts.
{_INLINE} int dot_s8s8(unsigned a, unsigned b) {{
  int sum;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(0));
  return sum;
}}"""

_DOT_U8S8 = f"""\
// The sum of four products of 8-bit parts; the parts of a are unsigned.
{_INLINE} int dot_u8s8(unsigned a, unsigned b) {{
  int sum;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(0));
  return sum;
}}"""

_DOT_BF16 = f"""\
// The sum of two products of bfloat16 parts.
{_INLINE} float dot_bf16(unsigned a, unsigned b) {{
  return __uint_as_float(a << 16) * __uint_as_float(b << 16) +
         __uint_as_float(a & 0xffff0000u) * __uint_as_float(b & 0xffff0000u);
}}"""

_SCALE = f"""\
// y * 2**n for an integer n given as a float.
{_INLINE} float scaled(float y, float n) {{
  return n != n ? n : ldexpf(y, (int)n);
}}
{_INLINE} double scaled(double y, double n) {{
  return n != n ? n : ldexp(y, (int)n);
}}"""

_COPIES = f"""\
// Starts copying 4, 8 or 16 bytes into shared memory, or writes zeros there unless some.
template <typename T> {_INLINE} void copy_async(T* to, const T* from, bool some = true) {{
#if __CUDA_ARCH__ >= 800
  const unsigned at = (unsigned)__cvta_generic_to_shared(to);
  const int bytes = some ? (int)sizeof(T) : 0;
  if constexpr (sizeof(T) == 16) {{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                 :: "r"(at), "l"(from), "r"(bytes) : "memory");
  }} else {{
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :: "r"(at), "l"(from), "n"(sizeof(T)), "r"(bytes) : "memory");
  }}
#else
  *to = some ? *from : T{{}};
#endif
}}
{_INLINE} void commit_copies() {{
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}}
// Waits for all groups of this thread but the last few.
template <int Pending> {_INLINE} void wait_copies() {{
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" :: "n"(Pending) : "memory");
#endif
}}"""

HELPERS: Mapping[str, str] = {
    "division": _DIVISION,
    "shifts": _SHIFTS,
    "float_division": _FLOAT_DIVISION,
    "integers": _INTEGERS,
    "extrema": _EXTREMA,
    "vec": _VEC,
    "turned": _TURNED,
    "copies": _COPIES,
    "float16": _FLOAT16,
    "bfloat16": _BFLOAT16,
    "power_of_two": _POWER_OF_TWO,
    "odd": _ODD,
    "word": _WORD,
    "dot_s8s8": _DOT_S8S8,
    "dot_u8s8": _DOT_U8S8,
    "dot_bf16": _DOT_BF16,
    "scaled": _SCALE,
    **MMA_HELPERS,
    **WGMMA_HELPERS,
    **QUAD_HELPERS,
    **BOX_HELPERS,
}
"""In order of emission: later ones use earlier ones."""

_NEEDS = {
    "turned": ("vec",),
    "word": ("bfloat16",),
    **MMA_NEEDS,
    **WGMMA_NEEDS,
    **QUAD_NEEDS,
    **BOX_NEEDS,
}


def prelude(used: Iterable[str], helpers: Mapping[str, str] = HELPERS) -> str:
    """The text of the helpers *used*, and of the helpers they call."""
    wanted = {name for one in used for name in (one, *_NEEDS.get(one, ()))}
    return "\n\n".join(text for name, text in helpers.items() if name in wanted)
