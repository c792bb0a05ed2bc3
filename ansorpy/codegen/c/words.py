"""Words that generated C must not use as names."""

from __future__ import annotations

from ansorpy.codegen.c.prelude import HELPERS, elementary_name
from ansorpy.codegen.clike.names import Words
from ansorpy.ir.elementary.table import APPROXIMATIONS

__all__ = ["WORDS"]

# Keywords of C, and of C++ because C++ programs include the headers; names that the included
# headers and compilers define; names of the generated functions' own parameters.
_RESERVED = """
alignas alignof and asm auto bool break case catch char class const constexpr continue default
delete do double else enum explicit export extern false float for friend goto if inline int long
mutable namespace new not nullptr operator or private protected public register restrict return
short signed sizeof static struct switch template this thread_local throw true try typedef typename
typeof union unsigned using virtual void volatile while xor
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim
floor fma fmax fmin fmod fpclassify frexp hypot ilogb isfinite isinf isnan isnormal j0 j1 jn ldexp
lgamma log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter pow remainder remquo rint
round scalbn signbit sin sinh sqrt tan tanh tgamma trunc y0 y1 yn
ceilf copysignf fabsf floorf fmodf rintf sqrtf
abs errno main memcpy memset
data code far huge interrupt linux near unix vector pixel
args begin count end number scratch threads workspace
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t size_t
DECIMAL_DIG INFINITY MAXFLOAT NAN NULL SIZE_MAX math_errhandling
"""
_PREFIXES = (
    "INT", "UINT", "PTRDIFF_", "SIG_ATOMIC_", "WCHAR_", "WINT_", "FLT_", "DBL_", "LDBL_",
    "HUGE_", "FP_", "M_", "MATH_", "omp_", "OMP_",
)  # fmt: skip
WORDS = Words(
    frozenset(_RESERVED.split())
    | HELPERS.keys()
    | {elementary_name(*which) for which in APPROXIMATIONS},
    _PREFIXES,
)
