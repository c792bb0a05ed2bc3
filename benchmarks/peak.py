"""What the machine can do, measured: multiply-adds, bytes read, and a fork and join of threads.

The loops are LLVM code of their own, not scheduled programs: a limit must not fall when the
generator does.  Measure beside what is judged by it; clocks drift by a quarter within minutes.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from threading import Barrier
from time import perf_counter

import numpy as np

from ansorpy.codegen.llvm.build import compile_ir
from ansorpy.codegen.llvm.jit import Library, load
from ansorpy.codegen.llvm.memory import aligned_empty
from ansorpy.codegen.llvm.timing import bench
from ansorpy.target import Target

__all__ = ["Peak", "fork_join_s", "measure_peak", "peak_flops", "read_bandwidth"]

_LOOP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
_ROUNDS, _ROUND_S = 5, 0.004
_LEAST_BYTES = 4096


@dataclass(frozen=True)
class Peak:
    """Float32 operations and bytes read a second on some threads, and seconds of a fork and join.

    ``bandwidth`` is that of data of one size, read again and again from wherever they stay.
    """

    flops: float
    bandwidth: float
    fork_join_s: float

    def least_s(self, flops: float, moved: float) -> float:
        """The roofline: the longer of computing and reading."""
        return max(flops / self.flops, moved / self.bandwidth)

    def is_compute_bound(self, flops: float, moved: float) -> bool:
        """True when computing takes longer than reading."""
        return flops / self.flops >= moved / self.bandwidth

    def or_better(self, other: Peak) -> Peak:
        """The better of two measurements in each respect: what disturbs only lowers a peak."""
        return Peak(
            max(self.flops, other.flops),
            max(self.bandwidth, other.bandwidth),
            min(self.fork_join_s, other.fork_join_s),
        )


def measure_peak(threads: int, footprint: int) -> Peak:
    """The peak of *threads* threads that share *footprint* bytes evenly; takes 0.1 s or so."""
    return Peak(
        peak_flops(threads),
        read_bandwidth(threads, footprint),
        fork_join_s(threads) if threads > 1 else 0.0,
    )


def peak_flops(threads: int) -> float:
    """Float32 operations a second (a multiply-add is two) from independent sums in registers."""
    lanes, sums = _shape()
    data = aligned_empty((lanes,), np.float32)
    data[...] = 0.5
    function = _LOOP(_library().address("multiply_add"))
    sink = [aligned_empty((lanes,), np.float32) for _ in range(threads)]

    def run(thread: int, repeats: int) -> None:
        function(data.ctypes.data, 0, repeats, sink[thread].ctypes.data)

    return 2.0 * lanes * sums * _per_second(run, threads)


def read_bandwidth(threads: int, footprint: int) -> float:
    """Bytes a second when each thread reads its share of *footprint* bytes over and over."""
    lanes, _ = _shape()
    step = 4 * lanes * _READS
    blocks = max(1, max(footprint // threads, _LEAST_BYTES) // step)
    data = [aligned_empty((blocks * step // 4,), np.float32) for _ in range(threads)]
    for array in data:
        array[...] = 0.0
    sink = aligned_empty((threads, lanes), np.float32)
    function = _LOOP(_library().address("read"))

    def run(thread: int, repeats: int) -> None:
        function(data[thread].ctypes.data, blocks, repeats, sink[thread].ctypes.data)

    return float(blocks * step) * _per_second(run, threads)


def fork_join_s(threads: int) -> float:
    """Median seconds of an empty parallel region, entered again and again."""
    status, seconds = bench(
        _library().address("fork_join"), [[0]], 0, threads=threads, warmup=2000, count=2000
    )
    assert status == 0
    return float(np.median(seconds))


def _per_second(run: Callable[[int, int], None], threads: int) -> float:
    """Repeats a second of all threads together, the best of a few rounds.

    Each thread has a core of its own: a round is too short for the system to part two on one.
    """
    barrier, best = Barrier(threads), 0.0
    cores = sorted(os.sched_getaffinity(0))

    def timed(thread: int, repeats: int) -> tuple[float, float]:
        os.sched_setaffinity(0, {cores[thread % len(cores)]})  # of this thread only
        barrier.wait()
        start = perf_counter()
        run(thread, repeats)
        return start, perf_counter()

    repeats = _repeats(run)
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(_ROUNDS):
            spans = list(pool.map(timed, range(threads), [repeats] * threads))
            took = max(end for _, end in spans) - min(start for start, _ in spans)
            best = max(best, threads * repeats / took)
    return best


def _repeats(run: Callable[[int, int], None]) -> int:
    """How many make a round of ``_ROUND_S``."""
    repeats, spent = 1, 0.0
    while spent < _ROUND_S / 2:
        repeats *= 2
        start = perf_counter()
        run(0, repeats)
        spent = perf_counter() - start
    return max(1, round(repeats * _ROUND_S / spent))


_READS = 8
"""Vectors read in one step of the loop, each into a sum of its own: hides the addition's time."""


@cache
def _shape() -> tuple[int, int]:
    """Lanes of a vector, and sums that fit the registers beside two operands."""
    target = Target.host()
    return target.lanes(32), 12 if target.vector_registers <= 16 else 24


@cache
def _library() -> Library:
    lanes, sums = _shape()
    text = "\n".join((_multiply_add(lanes, sums), _read(lanes), _FORK_JOIN))
    symbols = ["multiply_add", "read", "fork_join"]
    return load([compile_ir(text, Target.host())], symbols=symbols)


def _multiply_add(lanes: int, sums: int) -> str:
    vector = f"<{lanes} x float>"
    phis = "\n".join(
        f"  %s{i} = phi {vector} [ %x, %entry ], [ %n{i}, %loop ]" for i in range(sums)
    )
    steps = "\n".join(
        f"  %n{i} = call {vector} @llvm.fma.v{lanes}f32({vector} %s{i}, {vector} %x, {vector} %x)"
        for i in range(sums)
    )
    return f"""
declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})

define void @multiply_add(ptr %data, i64 %unused, i64 %repeats, ptr %sink) {{
entry:
  %x = load {vector}, ptr %data
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}
{steps}
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %repeats
  br i1 %again, label %loop, label %done
done:
{_total(vector, sums)}
  ret void
}}
"""


def _read(lanes: int) -> str:
    vector = f"<{lanes} x float>"
    outer = "\n".join(
        f"  %r{i} = phi {vector} [ zeroinitializer, %entry ], [ %n{i}, %row ]"
        for i in range(_READS)
    )
    inner = "\n".join(
        f"  %s{i} = phi {vector} [ %r{i}, %repeat ], [ %n{i}, %loop ]" for i in range(_READS)
    )
    steps = "\n".join(
        f"  %p{i} = getelementptr {vector}, ptr %data, i64 %v{i}\n"
        f"  %x{i} = load {vector}, ptr %p{i}\n"
        f"  %n{i} = fadd {vector} %s{i}, %x{i}"
        for i in range(_READS)
    )
    offsets = "\n".join(f"  %v{i} = add i64 %base, {i}" for i in range(_READS))
    return f"""
define void @read(ptr %data, i64 %blocks, i64 %repeats, ptr %sink) {{
entry:
  br label %repeat
repeat:
  %j = phi i64 [ 0, %entry ], [ %j.next, %row ]
{outer}
  br label %loop
loop:
  %i = phi i64 [ 0, %repeat ], [ %next, %loop ]
{inner}
  %base = mul i64 %i, {_READS}
{offsets}
{steps}
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %blocks
  br i1 %again, label %loop, label %row
row:
  %j.next = add i64 %j, 1
  %more = icmp slt i64 %j.next, %repeats
  br i1 %more, label %repeat, label %done
done:
{_total(vector, _READS)}
  ret void
}}
"""


def _total(vector: str, sums: int) -> str:
    """Store the sum of ``%n0 ...`` so that none of them is dead."""
    lines = [f"  %t1 = fadd {vector} %n0, %n1"]
    lines += [f"  %t{i} = fadd {vector} %t{i - 1}, %n{i}" for i in range(2, sums)]
    return "\n".join([*lines, f"  store {vector} %t{sums - 1}, ptr %sink"])


_FORK_JOIN = """
declare void @GOMP_parallel(ptr, ptr, i32, i32)

define internal void @nothing(ptr %unused) {
  ret void
}

define i32 @fork_join(ptr %arguments, ptr %workspace, i32 %threads) {
  call void @GOMP_parallel(ptr @nothing, ptr null, i32 %threads, i32 0)
  ret i32 0
}
"""
