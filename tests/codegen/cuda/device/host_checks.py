"""The kernels that check memory, compiled for the host: one thread after another."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ansorpy.codegen.cuda.device.checks import (
    SOURCE,
    Difference,
    NearBounds,
    difference_launch,
    difference_question,
    filled_launch,
    filled_questions,
    read_difference,
)
from ansorpy.codegen.cuda.launch.plan import Launch

__all__ = ["HostChecks"]

_KINDS = ("float16", "bfloat16", "float32", "float64", "1", "2", "4", "8")
_HOST = """\
#include <string.h>
#include <utility>
struct uint4 { unsigned x, y, z, w; };
struct place { unsigned x; };
static place gridDim, blockDim, blockIdx, threadIdx;
#define __global__
#define __device__
template <typename To, typename From> static To cast(From x) {
  static_assert(sizeof(To) == sizeof(From), "");
  To y;
  memcpy(&y, &x, sizeof(y));
  return y;
}
#define __uint_as_float cast<float, unsigned>
#define __longlong_as_double cast<double, long long>
#define __double_as_longlong cast<long long, double>
static void atomicAdd(unsigned long long* at, unsigned long long x) { *at += x; }
static void atomicMax(unsigned long long* at, unsigned long long x) { *at = *at < x ? x : *at; }
"""
_RUN = """
extern "C" void run_{kernel}(void** args, unsigned blocks, unsigned threads) {{
  gridDim.x = blocks, blockDim.x = threads;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) call({kernel}, args);
}}
"""
_CALL = """
template <typename... T, unsigned long... N>
static void call_of(void (*kernel)(T...), void** args, std::index_sequence<N...>) {
  kernel((T)args[N]...);
}
template <typename... T> static void call(void (*kernel)(T...), void** args) {
  call_of(kernel, args, std::make_index_sequence<sizeof...(T)>());
}
"""


class HostChecks:
    """Runs the kernels on numpy's arrays, with the questions and answers of the driver."""

    def __init__(self, folder: Path) -> None:
        text, library = folder / "checks.cpp", folder / "checks.so"
        kernels = ["differs", "filled", *(f"difference_{kind}" for kind in _KINDS)]
        runs = [_RUN.format(kernel=kernel) for kernel in kernels]
        text.write_text("".join([_HOST, SOURCE, _CALL, *runs]))
        flags = ["-O1", "-std=c++17", "-ffp-contract=off", "-shared", "-fPIC"]
        subprocess.run(["g++", *flags, str(text), "-o", str(library)], check=True)
        self._library = ctypes.CDLL(str(library))

    def run(self, launch: Launch, given: Sequence[int], asked: npt.NDArray[np.uint64]) -> None:
        args = (ctypes.c_void_p * (len(given) + 1))(*given, asked.ctypes.data)
        blocks = launch.grid[0] if launch.kernel == "filled" else 3
        getattr(self._library, f"run_{launch.kernel}")(args, blocks, 8)

    def filled(self, ranges: Sequence[tuple[int, int]], byte: int) -> list[bool]:
        found: list[bool] = []
        for question in filled_questions(ranges):
            self.run(filled_launch(question), (byte,), question)
            found += [not differs for differs in question[:, 2]]
        return found

    def difference(
        self, address: int, wanted: int, dtype: np.dtype[Any], count: int, bounds: NearBounds | None
    ) -> Difference:
        asked = difference_question(count, bounds)
        given = (address, wanted, bounds.address if bounds else 0)
        self.run(difference_launch(dtype), given, asked)
        return read_difference(asked)
