"""Arrays for compiled code: alignment, and areas that are used again."""

from __future__ import annotations

import gc
import mmap
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ansorpy.codegen.llvm.objects import memory
from ansorpy.codegen.llvm.objects.memory import aligned_empty, allocator, sized_allocator
from ansorpy.ir.strides import ALIGNMENT_BYTES

HUGE = 2 << 20
LARGE = (HUGE // 4 + 3,)


@pytest.fixture
def mapped(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the areas that were taken from the system."""
    sizes: list[int] = []
    take = mmap.mmap

    def counted(file: int, size: int, flags: int) -> mmap.mmap:
        sizes.append(size)
        return take(file, size, flags)

    monkeypatch.setattr(mmap, "mmap", counted)
    return sizes


@pytest.mark.parametrize("shape", [(0, 3), (7, 37), LARGE, (3, *LARGE)])
def test_arrays_are_aligned_and_writable(shape: tuple[int, ...]) -> None:
    allocate = allocator(shape, np.float32)
    for _ in range(2):
        array = allocate()
        assert array.shape == shape and array.dtype == np.float32
        assert array.flags.c_contiguous and array.flags.writeable
        boundary = HUGE if array.nbytes >= HUGE else ALIGNMENT_BYTES
        assert not array.size or array.ctypes.data % boundary == 0
        array.fill(1)


@pytest.mark.parametrize("shape", [(), (7, 5)])
def test_tiny_arrays_are_writable(shape: tuple[int, ...]) -> None:
    for array in (allocator(shape, np.float32)(), sized_allocator(np.float32)(shape)):
        array.fill(1)
        assert array.shape == shape and array.dtype == np.float32 and array.flags.aligned


def test_a_result_that_replaces_the_last_one_takes_no_new_memory(mapped: list[int]) -> None:
    allocate = allocator(LARGE, np.float32)
    result = allocate()
    for _ in range(20):
        result = allocate()
    assert result.shape == LARGE and mapped == [4 * LARGE[0] + HUGE] * 2


def test_what_the_caller_keeps_is_not_used_again(mapped: list[int]) -> None:
    allocate = allocator(LARGE, np.float32)
    arrays = [allocate() for _ in range(4)]
    for number, array in enumerate(arrays):
        array.fill(number)
    whole = arrays.pop(0)
    views = [whole[5:7], arrays.pop(0).data, np.asarray(arrays.pop(0))[::-1].reshape(-1)]
    del whole, array
    gc.collect()
    for _ in range(3):
        allocate().fill(99)
    assert [float(np.asarray(view)[0]) for view in views] == [0, 1, 2]
    assert (arrays[0] == 3).all() and len(mapped) == 5
    views.clear()
    arrays.clear()
    kept = [allocate() for _ in range(4)]
    assert len(mapped) == 7 and len({array.ctypes.data for array in kept}) == 4


def test_arrays_that_grow_slowly_use_the_same_areas(mapped: list[int]) -> None:
    allocate = sized_allocator(np.float32)
    for rows in (1, 0, 40, *range(100, 200), 57, 200):
        result = allocate((rows, 7919))
        assert result.shape == (rows, 7919)
        result.fill(rows)
    assert len(mapped) < 12
    assert all(size <= 1.25 * 200 * 7919 * 4 + 2 * HUGE for size in mapped)
    kept = [allocate((200, 7919)) for _ in range(4)]
    assert len({array.ctypes.data for array in (*kept, result)}) == 5
    assert (result == 200).all()


def test_threads_never_share_an_area() -> None:
    allocate = allocator(LARGE, np.float32)
    start = threading.Barrier(4)

    def work(number: int) -> bool:
        start.wait()
        right = True
        for turn in range(40):
            array = allocate()
            array[:: 1 << 10] = 100 * number + turn
            right &= bool((array[:: 1 << 10] == 100 * number + turn).all())
        return right

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="this system does not tell")
def test_large_arrays_may_have_huge_pages() -> None:
    """Shared memory, for which advice is in vain, is marked ``sh``; advised memory ``hg``."""
    array = memory.aligned_empty((3 * HUGE,), np.uint8)
    found: list[str] = []
    is_inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if ends := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            low, high = (int(end, 16) for end in ends.groups())
            is_inside = low <= array.ctypes.data < high
        elif line.startswith("VmFlags:") and is_inside:
            found = line.split()
    assert "hg" in found and "sh" not in found


def test_more_than_there_is_is_an_error_that_says_how_much() -> None:
    with pytest.raises(MemoryError, match=r"an array needs 1048576\.0 GiB"):
        aligned_empty((1 << 50,), np.uint8)
