"""A kernel that compares two regions of GPU memory byte by byte."""

from __future__ import annotations

from ansorpy.codegen.cuda.launch.plan import Argument, Launch

__all__ = ["LAUNCH", "SOURCE"]

_THREADS = 256
_BLOCKS = 1024

SOURCE = """\
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
"""
"""``asked`` holds the number of bytes, then a 0 that becomes 1 if the regions differ."""

LAUNCH = Launch(
    "differs",
    (_BLOCKS, 1, 1),
    (_THREADS, 1, 1),
    tuple(Argument(name, "parameter", n) for n, name in enumerate(("a", "b", "asked"))),
)
