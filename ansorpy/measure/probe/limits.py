"""Hardware limits of this machine, each measured in hundredths of a second, memory in tenths.

Clock rates drift by a quarter within minutes: measure a limit together with what it is compared to.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import perf_counter

import numpy as np

from ansorpy.codegen.llvm.objects.memory import aligned_empty
from ansorpy.codegen.llvm.objects.timing import bench
from ansorpy.measure.probe.loops import BLOCK, LINKS, full_lanes, loop, sums, team_kernel
from ansorpy.measure.workers.processes import usable_cores

__all__ = ["clock_hz", "fork_join_s", "peak_flops", "read_bandwidth", "write_bandwidth"]

_ROUNDS, _ROUND_S = 5, 0.004
_ENOUGH_S = 0.25
"""Long rounds, which read memory beyond the caches, average out disturbances: after this many
seconds of them, and at least three, no more follow."""
_LEAST_BYTES = 4096


def clock_hz() -> float:
    """Cycles per second, from a dependent chain of single-cycle operations."""
    function, sink = loop("chain"), aligned_empty((8,), np.int64)

    def run(thread: int, repeats: int) -> None:
        function(0, 0x5DEECE66D, repeats, sink.ctypes.data)

    return LINKS * _per_second(run, 1)


def peak_flops(threads: int, *, half: bool = False) -> float:
    """Float32 operations per second (a multiply-add is two) from independent sums in registers.

    Args:
        half: Use vectors half as wide as the widest.
    """
    lanes = max(1, full_lanes() // 2) if half else full_lanes()
    data = aligned_empty((full_lanes(),), np.float32)
    data[...] = 0.5
    function = loop("multiply_add_half" if half else "multiply_add")
    sink = [aligned_empty((full_lanes(),), np.float32) for _ in range(threads)]

    def run(thread: int, repeats: int) -> None:
        function(data.ctypes.data, 0, repeats, sink[thread].ctypes.data)

    return 2.0 * lanes * sums() * _per_second(run, threads)


def read_bandwidth(threads: int, footprint: int) -> float:
    """Bytes per second when each thread repeatedly reads its share of *footprint* bytes."""
    return _bandwidth("read", threads, footprint)


def write_bandwidth(threads: int, footprint: int) -> float:
    """Bytes per second when each thread repeatedly writes its share of *footprint* bytes."""
    return _bandwidth("write", threads, footprint)


def _bandwidth(name: str, threads: int, footprint: int) -> float:
    lanes = full_lanes()
    step = 4 * lanes * BLOCK
    blocks = max(1, max(footprint // threads, _LEAST_BYTES) // step)
    data = aligned_empty((threads, blocks * step // 4), np.float32)
    data[...] = 0.0
    sink = aligned_empty((threads, lanes), np.float32)
    function = loop(name)

    def run(thread: int, repeats: int) -> None:
        function(data[thread].ctypes.data, blocks, repeats, sink[thread].ctypes.data)

    return float(blocks * step) * _per_second(run, threads)


def fork_join_s(threads: int) -> float:
    """Seconds that a fork-join adds to each thread's own work, for consecutive regions.

    The work is timed alternately with one thread and with all; the minima are taken, because
    disturbances only lengthen the times.
    """
    address = team_kernel("fork_join")
    place = aligned_empty((threads,), np.int64).ctypes.data

    def median_s(team: int) -> float:
        status, seconds = bench(address, [[0]], place, threads=team, warmup=100, count=400)
        assert status == 0
        return float(np.median(seconds))

    turns = [(median_s(threads), median_s(1)) for _ in range(_ROUNDS)]
    return max(0.0, min(shared for shared, _ in turns) - min(alone for _, alone in turns))


def _per_second(run: Callable[[int, int], None], threads: int) -> float:
    """Repeats per second of all threads together, the best of a few rounds; fewer if they are long.

    Each thread is pinned to its own core: a round is too short for the OS to separate two threads.
    """
    barrier, best = Barrier(threads), 0.0
    cores = usable_cores()

    def timed(thread: int, repeats: int) -> tuple[float, float]:
        os.sched_setaffinity(0, {cores[thread % len(cores)]})  # affects this thread only
        barrier.wait()
        start = perf_counter()
        run(thread, repeats)
        return start, perf_counter()

    repeats = _repeats(run)
    with ThreadPoolExecutor(threads) as pool:
        spent = 0.0
        for number in range(_ROUNDS):
            if number >= 3 and spent > _ENOUGH_S:
                break
            spans = list(pool.map(timed, range(threads), [repeats] * threads))
            took = max(end for _, end in spans) - min(start for start, _ in spans)
            best, spent = max(best, threads * repeats / took), spent + took
    return best


def _repeats(run: Callable[[int, int], None]) -> int:
    """Number of repeats that fill a round of ``_ROUND_S``."""
    repeats, spent = 1, 0.0
    while spent < _ROUND_S / 2:
        repeats *= 2
        start = perf_counter()
        run(0, repeats)
        spent = perf_counter() - start
    return max(1, round(repeats * _ROUND_S / spent))
