"""The kernels that check memory: their text, run on the host a thread after another."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.codegen.cuda.device.checks import ASKED_BYTES, DIFFERS, SOURCE, filled_questions
from ansorpy.codegen.cuda.device.nvrtc import compile_source
from ansorpy.target import Target
from tests.codegen.cuda.compiling import needs_nvrtc
from tests.codegen.cuda.device.host_checks import HostChecks
from tests.codegen.cuda.emulator import needs_compiler


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> HostChecks:
    return HostChecks(tmp_path_factory.mktemp("checks"))


@needs_compiler
def test_one_byte_that_differs_is_found_anywhere(checks: HostChecks) -> None:
    def differs(a: np.ndarray, b: np.ndarray, size: int) -> bool:
        asked = np.array([size, 0], np.uint64)
        checks.run(DIFFERS, (a.ctypes.data, b.ctypes.data), asked)
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


@needs_compiler
def test_ranges_that_do_not_hold_the_byte_are_named(checks: HostChecks) -> None:
    rng = np.random.default_rng(1)
    memory = np.full(5000, 0xFF, np.uint8)
    starts = np.arange(300) * 16 + rng.integers(0, 5, 300)
    ranges = [(memory.ctypes.data + int(start), 11) for start in starts]
    assert checks.filled(ranges, 0xFF) == [True] * 300
    hurt = [0, 256, 299]
    memory[starts[hurt] - 1] = memory[starts[hurt] + 11] = 0  # next to them
    assert all(checks.filled(ranges, 0xFF))
    memory[starts[hurt] + rng.integers(0, 11, 3)] ^= 16
    assert [n for n, good in enumerate(checks.filled(ranges, 0xFF)) if not good] == hurt
    assert max(question.nbytes for question in filled_questions(ranges)) == ASKED_BYTES
    assert checks.filled([], 0) == []


@needs_nvrtc
@pytest.mark.parametrize("name", ["sm_80", "sm_90"])
def test_they_compile(name: str) -> None:
    cubin, report = compile_source(SOURCE, Target.parse(name))
    assert b"differs" in cubin and b"difference_bfloat16" in cubin
    assert report.count("0 bytes spill stores") == 10
