"""Time a kernel repeatedly inside compiled code, without the interpreter between two calls."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ansorpy.codegen.llvm.objects.build import compile_ir
from ansorpy.codegen.llvm.objects.clock import NOW, NOW_SOURCE
from ansorpy.codegen.llvm.objects.jit import LoadedObjects, load
from ansorpy.codegen.llvm.objects.memory import aligned_empty
from ansorpy.codegen.singletons import singleton
from ansorpy.target import Target

__all__ = ["bench", "bench_address"]

_SYMBOL = "ansorpy_bench"
_SIGNATURE = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
    ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p,
)  # fmt: skip

_SOURCE = f"""{NOW_SOURCE}
define i64 @{_SYMBOL}(ptr %kernel, ptr %args, i64 %copies, i64 %nargs, ptr %workspace,
                      i32 %threads, i64 %warmup, i64 %count, ptr %ns) {{
entry:
  %total = add i64 %warmup, %count
  %any = icmp sgt i64 %total, 0
  br i1 %any, label %call, label %done

call:
  %i = phi i64 [ 0, %entry ], [ %next, %stored ]
  %copy = urem i64 %i, %copies
  %row = mul i64 %copy, %nargs
  %table = getelementptr ptr, ptr %args, i64 %row
  %begin = call i64 @{NOW}()
  %status = call i32 %kernel(ptr %table, ptr %workspace, i32 %threads)
  %end = call i64 @{NOW}()
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %stopped, label %record

record:
  %took = sub i64 %end, %begin
  %ns.float = sitofp i64 %took to double
  %counted = sub i64 %i, %warmup
  %keep = icmp sge i64 %counted, 0
  br i1 %keep, label %store, label %stored

store:
  %slot = getelementptr double, ptr %ns, i64 %counted
  store double %ns.float, ptr %slot
  br label %stored

stored:
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %total
  br i1 %again, label %call, label %done

stopped:
  %code = sext i32 %status to i64
  ret i64 %code

done:
  ret i64 0
}}
"""


@singleton
def _library() -> LoadedObjects:
    """The loaded code, built once per process."""
    return load([compile_ir(_SOURCE, Target.host())], symbols=[_SYMBOL])


def bench_address() -> int:
    """Address of ``bench(kernel, args, copies, nargs, workspace, threads, warmup, count, ns)``.

    It calls ``kernel(args + (i % copies) * nargs, workspace, threads)`` for i below
    ``warmup + count``, times each with ``CLOCK_MONOTONIC``, and writes the last *count* times
    in nanoseconds to ``double ns[count]``.  It stops at the first nonzero status and returns that
    as int64, or 0.
    """
    return _library().address(_SYMBOL)


def bench(
    kernel: int,
    arguments: Sequence[Sequence[int]] | NDArray[np.uint64],
    workspace: int,
    *,
    threads: int,
    warmup: int,
    count: int,
) -> tuple[int, NDArray[np.float64]]:
    """Time *count* calls of *kernel* after *warmup* untimed ones.

    Args:
        kernel: Address of a function with the kernel ABI.
        arguments: One row of argument addresses per copy of the data; call i uses row
            ``i % copies``, so that constants can be made cold.
        workspace: Address of the kernel's workspace.

    Returns:
        The kernel's status (0 if all calls succeeded) and the time of each call in seconds.
    """
    table = np.ascontiguousarray(arguments, dtype=np.uint64)
    times = aligned_empty((max(1, count),), np.float64)
    times[...] = np.nan
    status = _SIGNATURE(bench_address())(
        kernel, table.ctypes.data, table.shape[0], table.shape[1], workspace, threads, warmup,
        count, times.ctypes.data,
    )  # fmt: skip
    return int(status), times[:count] * 1e-9
