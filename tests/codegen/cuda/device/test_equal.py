"""The kernel that compares memory: its text, run on the host a thread after another."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ansorpy.codegen.cuda.device.equal import SOURCE
from ansorpy.codegen.cuda.device.nvrtc import compile_source
from ansorpy.target import Target
from tests.codegen.cuda.compiling import needs_nvrtc
from tests.codegen.cuda.emulator import needs_compiler

_HOST = """\
struct uint4 { unsigned x, y, z, w; };
struct place { unsigned x; };
static place gridDim{3}, blockDim{8}, blockIdx, threadIdx;
#define __global__
"""
_RUN = """
extern "C" void run(const uint4* a, const uint4* b, unsigned long long* asked) {
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) differs(a, b, asked);
}
"""


@needs_compiler
def test_one_byte_that_differs_is_found_anywhere(tmp_path: Path) -> None:
    text, library = tmp_path / "equal.cpp", tmp_path / "equal.so"
    text.write_text(_HOST + SOURCE + _RUN)
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", str(text), "-o", str(library)], check=True)
    run = ctypes.CDLL(str(library)).run

    def differs(a: np.ndarray, b: np.ndarray, size: int) -> bool:
        asked = np.array([size, 0], np.uint64)
        run(*(ctypes.c_void_p(x.ctypes.data) for x in (a, b, asked)))
        return bool(asked[1])

    rng = np.random.default_rng(0)
    for size in (0, 1, 15, 16, 17, 16 * 24 - 1, 16 * 24, 1003):
        a = rng.integers(0, 256, size + 1, np.uint8)
        b = a.copy()
        b[size] ^= 1  # beyond what is compared
        assert not differs(a, b, size)
        for at in range(size):
            b[at] ^= 1 << at % 8
            assert differs(a, b, size), (size, at)
            b[at] = a[at]


@needs_nvrtc
@pytest.mark.parametrize("name", ["sm_80", "sm_90"])
def test_it_compiles(name: str) -> None:
    cubin, report = compile_source(SOURCE, Target.parse(name))
    assert b"differs" in cubin and "0 bytes spill stores" in report
