"""Kernels that check GPU memory: whether regions are equal, hold a byte, or nearly agree.

Each gets an array of 64-bit numbers, ``asked``, in which it finds its question and leaves its
answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ansorpy.codegen.cuda.launch.plan import Argument, Launch

__all__ = [
    "ASKED_BYTES", "DIFFERS", "SOURCE", "Difference", "NearBounds", "difference_launch",
    "difference_question", "filled_launch", "filled_questions", "read_difference",
]  # fmt: skip

Question = npt.NDArray[np.uint64]

_THREADS = 256
_BLOCKS = 1024
_RANGES = 256
"""Ranges of one question to ``filled``."""
ASKED_BYTES = 3 * 8 * _RANGES
"""Bytes of the longest ``asked``."""


@dataclass(frozen=True)
class Difference:
    """How an array differs from its reference.

    Args:
        largest: The largest difference of two finite elements.
        wrong: The number of elements that differ by more than their bound, that are finite in only
            one of the arrays, or that are different infinities.  Of integers: that differ.
    """

    largest: float
    wrong: int


@dataclass(frozen=True)
class NearBounds:
    """Bounds on differences in GPU memory: one at *address* for every *row* elements.

    Bounds of float64 arrays are float64, all others float32.
    """

    address: int
    row: int


_INTEGERS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long"}
_FLOATS = {
    "float16": ("unsigned short", "float"),
    "bfloat16": ("unsigned short", "float"),
    "float32": ("unsigned", "float"),
    "float64": ("unsigned long long", "double"),
}

_COMMON = """\
extern "C" __global__ void differs(const uint4* a, const uint4* b, unsigned long long* asked) {
  const unsigned long long size = asked[0], words = size / 16;
  const unsigned long long threads = (unsigned long long)gridDim.x * blockDim.x;
  const unsigned long long first = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  bool found = false;
  for (unsigned long long k = first; k < words; k += threads) {
    const uint4 x = a[k], y = b[k];
    found |= x.x != y.x || x.y != y.y || x.z != y.z || x.w != y.w;
  }
  for (unsigned long long k = 16 * words + first; k < size; k += threads)
    found |= ((const unsigned char*)a)[k] != ((const unsigned char*)b)[k];
  if (found) asked[1] = 1;
}

extern "C" __global__ void filled(unsigned long long byte, unsigned long long* asked) {
  unsigned long long* range = asked + 3 * blockIdx.x;
  const unsigned char* start = (const unsigned char*)range[0];
  bool found = false;
  for (unsigned long long k = threadIdx.x; k < range[1]; k += blockDim.x)
    found |= start[k] != (unsigned char)byte;
  if (found) range[2] = 1;
}

static __device__ float as_bfloat16(unsigned short bits) {
  return __uint_as_float((unsigned)bits << 16);
}
static __device__ float as_float16(unsigned short bits) {
  const unsigned exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const float size = exponent == 31 ? __uint_as_float(0x7f800000u | mantissa << 13)
                   : exponent ? __uint_as_float((exponent + 112) << 23 | mantissa << 13)
                   : mantissa * (1.0f / 16777216);
  return bits >> 15 ? -size : size;
}
static __device__ float as_float32(unsigned bits) { return __uint_as_float(bits); }
static __device__ double as_float64(unsigned long long bits) {
  return __longlong_as_double((long long)bits);
}
"""

_FLOAT = """
extern "C" __global__ void difference_{name}(
    const {bits}* got, const {bits}* want, const {value}* bounds, unsigned long long* asked) {{
  const unsigned long long count = asked[0], row = asked[1];
  const unsigned long long threads = (unsigned long long)gridDim.x * blockDim.x;
  const unsigned long long first = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long wrong = 0;
  {value} largest = 0;
  for (unsigned long long k = first; k < count; k += threads) {{
    const {bits} x = got[k], y = want[k];
    if (x == y) continue;
    const {value} a = as_{name}(x), b = as_{name}(y);
    if (y == ({bits})~({bits})0) {{
      ++wrong;  // between elements
    }} else if (b - b != 0) {{
      if (a != b && (a == a || b == b)) ++wrong;
    }} else if (a - a != 0) {{
      ++wrong;
    }} else {{
      const {value} off = a < b ? b - a : a - b;
      if (off > largest) largest = off;
      if (bounds && off > bounds[k / row]) ++wrong;
    }}
  }}
  const unsigned long long found = (unsigned long long)__double_as_longlong((double)largest);
  if (wrong) atomicAdd(asked + 2, wrong);
  if (found > *(volatile unsigned long long*)(asked + 3)) atomicMax(asked + 3, found);
}}
"""

_INTEGER = """
extern "C" __global__ void difference_{bytes}(
    const {bits}* got, const {bits}* want, const float*, unsigned long long* asked) {{
  const unsigned long long count = asked[0];
  const unsigned long long threads = (unsigned long long)gridDim.x * blockDim.x;
  unsigned long long k = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x, wrong = 0;
  for (; k < count; k += threads) wrong += got[k] != want[k];
  if (wrong) atomicAdd(asked + 2, wrong);
}}
"""

SOURCE = (
    _COMMON
    + "".join(
        _FLOAT.format(name=name, bits=bits, value=value) for name, (bits, value) in _FLOATS.items()
    )
    + "".join(_INTEGER.format(bytes=size, bits=bits) for size, bits in _INTEGERS.items())
)
"""CUDA C of all kernels; see the functions below for what each is asked.

``difference_TYPE``: elements with equal bits agree.  A reference whose bits are all ones is not an
element but a gap between elements, which must be unchanged.
"""


def _launch(kernel: str, *names: str, blocks: int = _BLOCKS) -> Launch:
    arguments = tuple(Argument(name, "parameter", n) for n, name in enumerate(names))
    return Launch(kernel, (blocks, 1, 1), (_THREADS, 1, 1), arguments)


DIFFERS = _launch("differs", "a", "b", "asked")
"""Asked: the number of bytes, then a 0 that becomes 1 if the regions differ."""


def filled_launch(question: Question) -> Launch:
    """The launch that answers one of :func:`filled_questions`.

    Its arguments are the byte that the ranges should hold, and what is asked.
    """
    return _launch("filled", "byte", "asked", blocks=len(question))


def filled_questions(ranges: Sequence[tuple[int, int]]) -> list[Question]:
    """Questions about *ranges*, each an address and a number of bytes.

    A question has a row for each range: these two numbers, and a 0 that becomes 1 if the range
    holds another byte than it should.
    """
    rows = np.array([(*each, 0) for each in ranges], np.uint64).reshape(-1, 3)
    return [rows[start : start + _RANGES].copy() for start in range(0, len(rows), _RANGES)]


def difference_launch(dtype: np.dtype[Any]) -> Launch:
    """The launch that compares arrays of *dtype*.

    Its arguments are the array, the reference, the bounds (or 0) and what is asked.
    """
    name = dtype.name if dtype.name in _FLOATS else str(dtype.itemsize)
    return _launch(f"difference_{name}", "got", "want", "bounds", "asked")


def difference_question(count: int, bounds: NearBounds | None) -> Question:
    """Asked of ``difference``: elements, elements of a row; then wrong elements, largest bits."""
    return np.array([count, bounds.row if bounds else 1, 0, 0], np.uint64)


def read_difference(asked: Question) -> Difference:
    """The answer of ``difference``."""
    return Difference(float(asked[3:4].view(np.float64)[0]), int(asked[2]))
