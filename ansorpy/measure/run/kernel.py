"""A candidate loaded into this process: bound once, run once for the check, timed in bursts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, TypeAlias

import numpy as np

from ansorpy.codegen.llvm.objects.jit import load
from ansorpy.codegen.llvm.objects.memory import aligned_empty
from ansorpy.codegen.llvm.objects.timing import bench
from ansorpy.codegen.object_code import KERNEL, ObjectCode
from ansorpy.errors import CodegenError
from ansorpy.ir.loops import Role
from ansorpy.ir.sizes import at, fixed
from ansorpy.measure.build.built import Built, ParamSpec
from ansorpy.measure.check.guard import GuardedArray
from ansorpy.measure.run.buffers import CheckBuffers, ConstantCopies, TaskArrays

__all__ = ["LoadedCode", "LoadedKernel", "Loader"]


class LoadedCode(Protocol):
    """Functions loaded into this process."""

    def address(self, symbol: str) -> int:
        """The address of the function *symbol*."""

    def close(self) -> None:
        """Unload the functions."""


Loader: TypeAlias = Callable[[Sequence[ObjectCode]], LoadedCode]
"""Loads generated code into this process."""


class LoadedKernel:
    """One candidate of *task*, run with *threads* threads.  A crash in it ends this process.

    Args:
        load: Loads its code; the default loads object code for this machine.
    """

    def __init__(self, built: Built, task: TaskArrays, threads: int, load: Loader = load) -> None:
        self.built = built
        self.task = task
        self.threads = threads
        self.packed = tuple(spec for spec in built.bind_params if spec.role is Role.OUTPUT)
        codes = [code for code in (built.run, built.bind) if code is not None]
        sizes = dict(zip(built.dims, built.sizes, strict=True))
        self.workspace_bytes = max(fixed(at(c.workspace_bytes(threads), sizes)) for c in codes)
        self._library = load(codes)
        self._sizes = np.array(built.sizes, dtype=np.int64)
        self._copies: ConstantCopies | None = None
        self._workspace = aligned_empty((max(64, self.workspace_bytes),), np.uint8)
        self._next_copy = 0

    def __enter__(self) -> LoadedKernel:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Unload the code."""
        self._library.close()

    def run_checked(self, buffers: CheckBuffers) -> float:
        """Run ``bind`` and then ``run`` once on guarded buffers; returns the seconds of ``run``.

        Raises:
            CodegenError: One of them returned an error code.
        """
        if self.built.bind is not None:
            self._call(self.built.bind, self.built.bind_params, buffers)
        return self._call(self.built.run, self.built.run_params, buffers)

    def _call(self, code: ObjectCode, params: Sequence[ParamSpec], buffers: CheckBuffers) -> float:
        arguments: list[GuardedArray] = buffers.arguments(params)
        addresses = [guarded.address for guarded in arguments]
        if self._sizes.size and code is self.built.run:
            addresses.append(self._sizes.ctypes.data)
        table = np.array(addresses, dtype=np.uint64)
        function = KERNEL(self._library.address(code.symbol))
        begin = time.perf_counter()
        status = function(table.ctypes.data, buffers.workspace.address, self.threads)
        seconds = time.perf_counter() - begin
        if status != 0:
            raise CodegenError(f"{code.symbol} returned the error code {status}")
        return seconds

    def prepare_timing(self, checked: CheckBuffers, reuse_distance_bytes: int) -> None:
        """Lay out the constants for timing, *reuse_distance_bytes* between two uses of a copy."""
        constants = checked.constants(self.built.run_params)
        params = self.built.run_params
        self._copies = ConstantCopies(self.task, params, constants, reuse_distance_bytes)
        if self._sizes.size:
            self._copies.append(self._sizes.ctypes.data)

    def burst(self, number: int) -> float:
        """Run *number* consecutive calls from compiled code; returns the seconds they took."""
        assert self._copies is not None, "prepare_timing must be called first"
        tables = np.roll(self._copies.tables, -self._next_copy, axis=0)[:number]
        self._next_copy = (self._next_copy + number) % len(self._copies.tables)
        symbol = self.built.run.symbol
        status, seconds = bench(
            self._library.address(symbol), tables.tolist(), self._workspace.ctypes.data,
            threads=self.threads, warmup=0, count=number,
        )  # fmt: skip
        if status != 0:
            raise CodegenError(f"{symbol} returned the error code {status}")
        return float(seconds.sum())
