"""Vector types and helper functions of generated C, created on demand from their names.

``f32x8`` is a vector of eight floats.  Conditions are always ``i32x8``, whatever they compare: -1
where they hold, else 0.  A function without a vector form applies the scalar one lane by lane.
"""

from __future__ import annotations

import re
from string import Template

from ansorpy.codegen.c.prelude import HELPERS, Helper, saturation, scaling
from ansorpy.codegen.c.types import computed_type, short_name, storage_type
from ansorpy.codegen.clike.operators import float_suffix
from ansorpy.ir.dtypes import DType

__all__ = ["vector_helper", "vector_type"]

_TYPES = {short_name(dtype): dtype for dtype in DType}
_NAME = re.compile(rf"(?:(\w+?)_)?({'|'.join(sorted(_TYPES, key=len, reverse=True))})x(\d+)")
_SIGNATURE = re.compile(r"static inline (\w+) \w+\(([^)]*)\)")
_OF_C = {
    storage_type(dtype): dtype for dtype in DType
    if storage_type(dtype) == f"{dtype.value}_t" or dtype in (DType.FLOAT32, DType.FLOAT64)
}  # fmt: skip


def vector_type(dtype: DType, lanes: int) -> str:
    """The name of the vector type of *lanes* elements of *dtype*."""
    return f"{short_name(dtype)}x{lanes}"


_TEMPLATES = {
    "load": """\
static inline $V load_$V(const $T *from) {
  $V v;
  memcpy(&v, from, sizeof v);
  return v;
}""",
    "load_part": """\
// Loads the first count elements; the other lanes are 0.
static inline $V load_part_$V(const $T *from, size_t count) {
  $V v = {0};
  memcpy(&v, from, count * sizeof *from);
  return v;
}""",
    "store": """\
static inline void store_$V($T *to, $V v) {
  memcpy(to, &v, sizeof v);
}""",
    "store_part": """\
// Stores the first count lanes.
static inline void store_part_$V($T *to, $V v, size_t count) {
  memcpy(to, &v, count * sizeof *to);
}""",
    "splat": """\
static inline $V splat_$V($T x) {
  return ($V){$each};
}""",
    "choose": """\
static inline $V choose_$V($M m, $V a, $V b) {
  return ($V)((m & ($M)a) | (~m & ($M)b));
}""",
    "select": """\
static inline $V select_$V($C m, $V a, $V b) {
  return choose_$V($wide, a, b);
}""",
    "max": """\
static inline $V max_$V($V a, $V b) {
  return choose_$V($greater, a, b);
}""",
    "min": """\
static inline $V min_$V($V a, $V b) {
  return choose_$V($less, a, b);
}""",
    "abs": """\
static inline $V abs_$V($V x) {
  return $size;
}""",
}
_OF_LANES = {
    "sum": "(($U)v[k] + ($U)v[k + n])", "prod": "(($U)v[k] * ($U)v[k + n])",
    "max": "max_$W(v[k], v[k + n])", "min": "min_$W(v[k], v[k + n])",
}  # fmt: skip
_TEMPLATES |= {
    f"{kind}_of": f"""\
static inline $T {kind}_of_$V($V v) {{
  for (int n = $half; n > 0; n /= 2)
    for (int k = 0; k < n; ++k) v[k] = ($T){combined};
  return v[0];
}}"""
    for kind, combined in _OF_LANES.items()
}
_FLOATS = {
    "from_f16": """\
// Else GCC warns, without a line that the pragma reaches, of how a vector is returned.
__attribute__((always_inline)) static inline f32x$N from_f16x$N(u16x$N x) {
  const u32x$N wide = __builtin_convertvector(x, u32x$N), size = wide & 0x7fffu;
  const u32x$N sign = (wide & 0x8000u) << 16, normal = (size << 13) + 0x38000000u;
  const u32x$N special = normal + 0x38000000u;
  const u32x$N small = (u32x$N)(__builtin_convertvector(size, f32x$N) * 0x1p-24f);
  const u32x$N is_normal = (u32x$N)(size >= 0x400u), is_special = (u32x$N)(size >= 0x7c00u);
  const u32x$N finite = (normal & is_normal) | (small & ~is_normal);
  return (f32x$N)(sign | (special & is_special) | (finite & ~is_special));
}""",
    "from_bf16": """\
static inline f32x$N from_bf16x$N(u16x$N x) {
  return (f32x$N)(__builtin_convertvector(x, u32x$N) << 16);
}""",
    "to_bf16": """\
// Rounds to nearest, ties to even.
static inline u16x$N to_bf16x$N(f32x$N x) {
  const u32x$N bits = (u32x$N)x, rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  const u32x$N is_nan = (u32x$N)(x != x);
  const u32x$N chosen = ((bits | 0x400000u) & is_nan) | (rounded & ~is_nan);
  return __builtin_convertvector(chosen >> 16, u16x$N);
}""",
}
_SCALE = """\
// y * 2**n for an integer n given as a float, in two steps; only the second can round.
static inline $V scale_$V($V y, $V n) {
  const $V rounder = splat_$V($rounder);
  const $M2 whole = ($M2)(n + rounder) - ($M2)rounder;
  const $M2 half = ((whole + 4096u) >> 1) - 2048u;
  const $V first = ($V)((half + ${bias}u) << $fraction);
  const $V second = ($V)((whole - half + ${bias}u) << $fraction);
  return choose_$V(n != n, n, y * first * second);
}"""
_TO_INTEGER = """\
// Rounds towards zero and saturates; NaN gives 0.
static inline $R ${to}_of_$V($V x) {
  const $R above = __builtin_convertvector(x >= $beyond, $R);
  const $R below = __builtin_convertvector(x <= $lowest, $R);
  const $V inside = choose_$V(($M)((x > $lowest) & (x < $beyond)), x, splat_$V(0));
  const $R whole = __builtin_convertvector(inside, $R);
  return (above & $most) | (below & $least) | (whole & ~(above | below));
}"""
_LANE_BY_LANE = """\
static inline $R $name($parameters) {
  $R all = {0};
  for (int k = 0; k < $N; ++k) all[k] = ($T)$scalar($arguments);
  return all;
}"""
_MATH = ("floor", "ceil", "rint", "sqrt")
_OF_DOUBLES = {"sin": 1, "cos": 1, "pow": 2}


def vector_helper(name: str) -> Helper:
    """The vector type or function called *name*."""
    match = _NAME.fullmatch(name)
    assert match is not None, name
    base, short, count = match[1], match[2], int(match[3])
    dtype = _TYPES[short]
    if base is None:
        size = dtype.bytes * count
        return Helper(f"typedef {storage_type(dtype)} {name} __attribute__((vector_size({size})));")
    if f"{base}_{short}" in _FLOATS:
        text = Template(_FLOATS[f"{base}_{short}"]).substitute(N=count)
    elif base in _TEMPLATES:
        text = _typed(_TEMPLATES[base], dtype, count)
    elif base == "scale":
        text = _typed(_SCALE, dtype, count, **scaling(dtype))
    elif base.endswith("_of"):
        text = _to_integer(_TYPES[base.removesuffix("_of")], dtype, count)
    else:
        text = _lane_by_lane(name, base, dtype, count)
    return Helper(text, _needs(name, text))


def _typed(template: str, dtype: DType, count: int, **more: object) -> str:
    """Fill in *template* for vectors of *count* elements of *dtype*."""
    bits, vector = dtype.bits, vector_type(dtype, count)
    unsigned, mask = f"u{bits}x{count}", f"i{bits}x{count}"
    if dtype.is_float:
        quiet = "0x7fffffffu" if bits == 32 else "0x7fffffffffffffffu"
        size, nan = f"({vector})(({unsigned})x & {quiet})", " | (a != a)"
    else:
        size, nan = f"choose_{vector}(({mask})(x < 0), ({vector})-({unsigned})x, x)", ""
    return Template(template).substitute(
        more, V=vector, T=storage_type(dtype), N=count, M=mask, M2=unsigned, C=f"i32x{count}",
        U=storage_type(dtype) if dtype.is_float else f"uint{max(32, bits)}_t",
        W=short_name(computed_type(dtype)), half=count // 2, each=", ".join(["x"] * count),
        size=size, greater=f"({mask})((a > b){nan})", less=f"({mask})((a < b){nan})",
        wide="m" if bits == 32 else f"__builtin_convertvector(m, {mask})",
    )  # fmt: skip


def _to_integer(wanted: DType, source: DType, count: int) -> str:
    return _typed(
        _TO_INTEGER, source, count, R=vector_type(wanted, count), to=short_name(wanted),
        **saturation(wanted, source),
    )  # fmt: skip


def _lane_by_lane(name: str, base: str, dtype: DType, count: int) -> str:
    """Apply a function of the prelude, or of ``math.h``, to each lane."""
    kind = storage_type(dtype)
    if base in _MATH or base in _OF_DOUBLES:
        scalar, result = f"{base}{float_suffix(dtype)}", kind
        kinds = [kind] * _OF_DOUBLES.get(base, 1)
    else:
        known = (f"{base}_{short_name(dtype)}", f"{base}_{short_name(computed_type(dtype))}", base)
        scalar = next(helper for helper in known if helper in HELPERS)
        signature = _SIGNATURE.search(HELPERS[scalar].text)
        assert signature is not None
        kinds = [parameter.split()[0] for parameter in signature[2].split(",")]
        result = signature[1]
        if dtype.is_int and dtype.bits < 32:
            kinds, result = [kind] * len(kinds), kind
    letters = "abcd"[: len(kinds)]
    parameters = [f"{_vector_of(k, count)} {x}" for k, x in zip(kinds, letters, strict=True)]
    return Template(_LANE_BY_LANE).substitute(
        R=_vector_of(result, count), name=name, N=count, T=result, scalar=scalar,
        parameters=", ".join(parameters),
        arguments=", ".join(f"{x}[k]" for x in letters),
    )  # fmt: skip


def _vector_of(kind: str, count: int) -> str:
    return vector_type(_OF_C[kind], count)


def _needs(name: str, text: str) -> tuple[str, ...]:
    """The helpers that *text* calls or mentions."""
    words = dict.fromkeys(re.findall(r"\w+", text))
    return tuple(w for w in words if w != name and (w in HELPERS or _NAME.fullmatch(w)))
