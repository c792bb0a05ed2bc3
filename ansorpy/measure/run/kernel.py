"""A candidate loaded into this process: bound once, run once for the check, timed in bursts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
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

    It is a :class:`ansorpy.measure.run.device.Candidate`.  The check runs on guarded ``buffers``,
    from which timing copies the constants.

    Args:
        load: Loads its code; the default loads object code for this machine.
    """

    unit = 1

    def __init__(self, built: Built, task: TaskArrays, threads: int, load: Loader = load) -> None:
        self.built = built
        self.task = task
        self.threads = threads
        codes = [code for code in (built.run, built.bind) if code is not None]
        sizes = dict(zip(built.dims, built.sizes, strict=True))
        self.workspace_bytes = max(fixed(at(c.workspace_bytes(threads), sizes)) for c in codes)
        packed = [spec for spec in built.bind_params if spec.role is Role.OUTPUT]
        self.buffers = CheckBuffers(task, packed, self.workspace_bytes)
        self._library = load(codes)
        self._sizes = np.array(built.sizes, dtype=np.int64)
        self._copies: ConstantCopies | None = None
        self._workspace = aligned_empty((max(64, self.workspace_bytes),), np.uint8)
        self._next_copy = 0

    def close(self) -> None:
        """Unload the code."""
        self._library.close()

    @property
    def fresh_bytes(self) -> int:
        return self.task.nbytes + self.workspace_bytes

    def check(self) -> float:
        self.buffers.poison()
        if self.built.bind is not None:
            self._call(self.built.bind, self.built.bind_params)
        seconds = self._call(self.built.run, self.built.run_params)
        if not self.buffers.is_intact():
            raise CodegenError("it wrote outside its buffers (found by the pattern around them)")
        return seconds

    def _call(self, code: ObjectCode, params: Sequence[ParamSpec]) -> float:
        """Call *code* on the guarded buffers; returns the seconds it took."""
        addresses = [guarded.address for guarded in self.buffers.arguments(params)]
        if self._sizes.size and code is self.built.run:
            addresses.append(self._sizes.ctypes.data)
        table = np.array(addresses, dtype=np.uint64)
        function = KERNEL(self._library.address(code.symbol))
        begin = time.perf_counter()
        status = function(table.ctypes.data, self.buffers.workspace.address, self.threads)
        seconds = time.perf_counter() - begin
        if status != 0:
            raise CodegenError(f"{code.symbol} returned the error code {status}")
        return seconds

    def prepare(self, reuse_distance_bytes: int) -> None:
        params = self.built.run_params
        constants = self.buffers.constants(params)
        self._copies = ConstantCopies(self.task, params, constants, reuse_distance_bytes)
        if self._sizes.size:
            self._copies.append(self._sizes.ctypes.data)

    def burst(self, number: int) -> float:
        """Run *number* consecutive calls from compiled code; returns the seconds they took."""
        assert self._copies is not None, "prepare must be called first"
        copies = len(self._copies.tables)
        next_ones = np.arange(self._next_copy, self._next_copy + min(number, copies))
        tables = self._copies.tables.take(next_ones, axis=0, mode="wrap")
        self._next_copy = (self._next_copy + number) % copies
        symbol = self.built.run.symbol
        status, seconds = bench(
            self._library.address(symbol), tables, self._workspace.ctypes.data,
            threads=self.threads, warmup=0, count=number,
        )  # fmt: skip
        if status != 0:
            raise CodegenError(f"{symbol} returned the error code {status}")
        return float(seconds.sum())
