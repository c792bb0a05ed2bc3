"""What a kernel does outside its buffers is seen."""

from __future__ import annotations

import ctypes
import os
import signal

import numpy as np
import pytest

from ansorpy.measure.check.guard import GuardedArray


@pytest.mark.parametrize("shape", [(1,), (), (3, 5, 7), (1024,), (1025,), (4096, 3)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_a_guarded_array_is_an_array(shape, dtype, rng):
    guarded = GuardedArray(shape, dtype)
    values = rng.integers(-9, 9, shape).astype(dtype)
    guarded.array[...] = values
    assert guarded.array.shape == shape
    assert np.array_equal(guarded.array, values)
    assert guarded.is_intact()


def test_alignment_is_kept_and_slack_before_and_after_is_watched():
    guarded = GuardedArray((33,), "float32", align=64)
    assert guarded.address % 64 == 0
    for beside in (-1, 33 * 4):
        byte = ctypes.c_uint8.from_address(guarded.address + beside)
        byte.value ^= 0xFF
        assert not guarded.is_intact()
        byte.value ^= 0xFF
        assert guarded.is_intact()


def test_poison_is_not_a_number():
    floats, bools = GuardedArray((5,), "float32"), GuardedArray((5,), "int32")
    floats.poison()
    bools.poison()
    assert np.isnan(floats.array.astype(np.float64)).all()
    assert (bools.array != 0).all()


@pytest.mark.parametrize("what", ["read beyond", "write beyond", "write sealed"])
def test_touching_the_guard_page_is_a_segmentation_fault(what):
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        guarded = GuardedArray((7,), "float32")
        beyond = np.lib.stride_tricks.as_strided(guarded.array, (8,), (4,), writeable=True)
        if what == "read beyond":
            float(beyond[7])
        elif what == "write beyond":
            beyond[7] = 1.0
        else:
            guarded.seal()
            beyond[3] = 1.0
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGSEGV


def test_what_lies_between_elements_is_watched_too() -> None:
    guarded = GuardedArray((3, 2), np.float32, strides=(4, 1))
    flat = np.lib.stride_tricks.as_strided(guarded.array, (10,), (4,))
    assert np.isnan(flat[[2, 3, 6, 7]]).all()
    guarded.poison()
    guarded.array[...] = 1
    assert guarded.is_intact() and flat[4] == 1
    flat[3] = 1
    assert not guarded.is_intact()
