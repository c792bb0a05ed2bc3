"""Tensor core instructions as helper functions, generated from their declarations."""

from __future__ import annotations

from collections.abc import Mapping

from ansorpy.codegen.cuda.emit.emitter import C_TYPES
from ansorpy.ir.dtypes import DType
from ansorpy.ir.fragments import fragment_registers, fragment_shape
from ansorpy.ir.intrinsics import LDMATRIX, MMA_SYNC, Intrinsic

__all__ = ["MMA_HELPERS", "MMA_NEEDS", "PAIRED", "PTX", "ROW_BYTES", "function_name"]

ROW_BYTES = 16
"""Bytes of a matrix row in shared memory, and its alignment."""

PTX = {
    DType.FLOAT16: "f16", DType.BFLOAT16: "bf16", DType.FLOAT32: "tf32", DType.INT8: "s8",
    DType.UINT8: "u8", DType.INT32: "s32",
}  # fmt: skip
"""PTX names of types."""

_PACKED = """\
// The bits of neighbouring elements in one register, the first in the lowest bits.
__device__ __forceinline__ unsigned packed(const float* x) {
  return __float_as_uint(*x);
}
template <typename T> __device__ __forceinline__ unsigned packed(const T* x) {
  unsigned all = 0;
  #pragma unroll
  for (int n = 0; n < 4 / (int)sizeof(T); ++n) {
    all |= (unsigned)bits_of(x[n]) << 8 * sizeof(T) * n;
  }
  return all;
}"""

_UNPACKED = """\
// Unpacks a register into neighbouring elements.
template <typename T> __device__ __forceinline__ void unpacked(T* to, unsigned all) {
  #pragma unroll
  for (int n = 0; n < 4 / (int)sizeof(T); ++n) {
    set_bits(to[n], all >> 8 * sizeof(T) * n);
  }
}"""

_MATRICES = """\
// Loads 8 x 8 matrices of 16-bit elements; each group of eight lanes gives the rows of one matrix.
template <bool Turned> __device__ __forceinline__ void load_matrices(
    unsigned (&to)[4], const void* row) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(row);
  if constexpr (Turned) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
  }
}
template <bool Turned> __device__ __forceinline__ void load_matrices(
    unsigned (&to)[2], const void* row) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(row);
  if constexpr (Turned) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1]) : "r"(at) : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1]) : "r"(at) : "memory");
  }
}"""

_BITS = """\
__device__ __forceinline__ unsigned char bits_of(signed char x) {
  return (unsigned char)x;
}
__device__ __forceinline__ unsigned char bits_of(unsigned char x) {
  return x;
}
__device__ __forceinline__ void set_bits(signed char& x, unsigned bits) {
  x = (signed char)bits;
}
__device__ __forceinline__ void set_bits(unsigned char& x, unsigned bits) {
  x = (unsigned char)bits;
}"""

_OF_HALF = """\
__device__ __forceinline__ unsigned short bits_of({kind} x) {{
  return x.bits;
}}
__device__ __forceinline__ void set_bits({kind}& x, unsigned bits) {{
  x.bits = (unsigned short)bits;
}}"""

# The row and the 16-byte column that a lane addresses.  The matrices are the quarters of A (upper
# left, lower left, upper right, lower right) or the halves of B, in the order of the registers.
_NAMED = {
    ("a", False): ("lane % 16", "lane / 16"),
    ("a", True): ("lane / 16 * 8 + lane % 8", "lane / 8 % 2"),
    ("b", False): ("lane % 8", "lane / 8 % 2"), ("b", True): ("lane % 16", "0"),
}  # fmt: skip


def function_name(intrinsic: str) -> str:
    """The C function name of an instruction."""
    return intrinsic.replace(".", "_")


def _function(by: Intrinsic) -> str:
    """The helper function of one instruction; each lane passes its share of the fragments."""
    total, left, right = by.types
    sizes = [fragment_registers(fragment) for fragment in by.fragments]
    near = 32 // left.bits
    m, n = fragment_shape(by.fragments[0])
    depth = fragment_shape(by.fragments[1])[1]
    wide = "s32" if total is DType.INT32 else "f32"
    kind = f"{wide}.{PTX[left]}.{PTX[right]}.{wide}"
    held = "r" if total is DType.INT32 else "f"
    packs = [
        f'"r"(packed(&{name}[{at}]))'
        for name, size in (("a", sizes[1]), ("b", sizes[2]))
        for at in range(0, size, near)
    ]
    places = [f"%{at}" for at in range(sizes[0] + len(packs))]
    sums, a, b = places[:4], places[4:8], places[8:]
    text = f"mma.sync.aligned.m{m}n{n}k{depth}.row.col.{kind}"
    given = ", ".join(packs[:4]), ", ".join(packs[4:])
    outs = ", ".join(f'"+{held}"(c[{at}])' for at in range(sizes[0]))
    return f"""\
// C[{m}, {n}] += A[{m}, {depth}] * B[{depth}, {n}] on a warp; each lane holds a share.
__device__ __forceinline__ void {function_name(by.name)}(
    {C_TYPES[total]} (&c)[{sizes[0]}], const {C_TYPES[left]} (&a)[{sizes[1]}],
    const {C_TYPES[right]} (&b)[{sizes[2]}]) {{
  asm volatile("{text} "
               "{{{", ".join(sums)}}}, {{{", ".join(a)}}}, {{{", ".join(b)}}}, "
               "{{{", ".join(sums)}}};"
               : {outs}
               : {given[0]},
                 {given[1]});
}}"""


def _load(by: Intrinsic) -> str:
    """The helper function of one fragment load; ``from`` is its first element in shared memory."""
    _, operand, _, *turned = by.name.split(".")
    dtype, held = by.types[0], fragment_registers(by.fragments[0])
    kind, near = C_TYPES[dtype], 4 // dtype.bytes
    row, column = _NAMED[operand, bool(turned)]
    step = ROW_BYTES // dtype.bytes
    return f"""\
// Loads a fragment from shared memory; each lane gets its share.
__device__ __forceinline__ void {function_name(by.name)}(
    {kind} (&to)[{held}], const {kind}* from, int rows) {{
  const int lane = threadIdx.y * 4 + threadIdx.x;
  unsigned words[{held // near}];
  load_matrices<{str(bool(turned)).lower()}>(words, from + ({row}) * rows + {column} * {step});
  #pragma unroll
  for (int n = 0; n < {held // near}; ++n) {{
    unpacked(&to[n * {near}], words[n]);
  }}
}}"""


def _pair(by: Intrinsic) -> str:
    """The helper function of two such loads at once, *step* elements apart."""
    _, operand, _, *turned = by.name.split(".")
    kind, row, column = C_TYPES[by.types[0]], *_NAMED[operand, bool(turned)]
    return f"""\
// Loads two fragments of which the second starts `step` elements after the first.
__device__ __forceinline__ void {function_name(by.name)}_pair(
    {kind} (&first)[4], {kind} (&second)[4], const {kind}* from, int rows, int step) {{
  const int lane = threadIdx.y * 4 + threadIdx.x;
  unsigned words[4];
  load_matrices<{str(bool(turned)).lower()}>(
      words, from + lane / 16 * step + ({row}) * rows + {column} * {ROW_BYTES // 2});
  unpacked(&first[0], words[0]);
  unpacked(&first[2], words[1]);
  unpacked(&second[0], words[2]);
  unpacked(&second[2], words[3]);
}}"""


def _bits(dtype: DType) -> tuple[str, ...]:
    """Names of the helpers that access the bits of an element."""
    return (dtype.value, f"{dtype.value}_bits") if dtype.is_half else ("byte_bits",)


PAIRED: Mapping[str, str] = {
    by.name: f"{function_name(by.name)}_pair"
    for by in LDMATRIX
    if by.name.startswith("ldmatrix.b") and by.types[0].bits == 16
}
"""The functions that load two fragments at once, by the instruction that loads one."""

MMA_HELPERS: Mapping[str, str] = {
    "byte_bits": _BITS,
    "float16_bits": _OF_HALF.format(kind="float16"),
    "bfloat16_bits": _OF_HALF.format(kind="bfloat16"),
    "packed": _PACKED,
    "unpacked": _UNPACKED,
    "matrices": _MATRICES,
    **{function_name(by.name): _function(by) for by in MMA_SYNC},
    **{function_name(by.name): _load(by) for by in LDMATRIX},
    **{PAIRED[by.name]: _pair(by) for by in LDMATRIX if by.name in PAIRED},
}
"""In order of emission."""

MMA_NEEDS: Mapping[str, tuple[str, ...]] = {
    **{function_name(by.name): (*_bits(by.types[1]), "packed") for by in MMA_SYNC},
    **{
        name: (*_bits(by.types[0]), "unpacked", "matrices")
        for by in LDMATRIX
        for name in (function_name(by.name), PAIRED.get(by.name))
        if name is not None
    },
}
