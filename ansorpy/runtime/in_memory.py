"""Load a plan into this process: pack its constants and link its code with the JIT."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ansorpy.codegen.cuda.driver import device_for
from ansorpy.codegen.llvm.jit import Library, load
from ansorpy.codegen.llvm.memory import aligned_empty, aligned_zeros
from ansorpy.errors import CodegenError, MissingDependency, UsageError
from ansorpy.runtime.cpu import missing_features, required_features
from ansorpy.runtime.entry import Constants, EntrySource, build_entry
from ansorpy.runtime.executable import Code, Executable
from ansorpy.runtime.gpu.executable import GpuExecutable
from ansorpy.runtime.plan import Memory, Plan, Step
from ansorpy.runtime.ports import Array

__all__ = ["InMemory", "TimedCalls", "load_plan", "make_pool"]

_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)


@dataclass(frozen=True)
class InMemory:
    """A loaded plan: ``pool`` holds all packed constants; ``plan`` lacks the original ones."""

    executable: Executable | GpuExecutable
    plan: Plan
    pool: NDArray[np.uint8]

    def timed(self) -> TimedCalls:
        """Link the same code and constants with an entry that timestamps the end of each call.

        Raises:
            UsageError: It runs on a GPU.
        """
        if self.plan.target.kind == "cuda":
            raise UsageError(
                "calls on a GPU are not timed one by one", hint="use Nsight Systems: nsys profile"
            )
        name = "timed"
        library = _link(self.plan, name, is_timed=True)
        executable = _executable(library, self.plan, name, self.pool)
        count = 1 + len(self.plan.steps)
        stamps = (ctypes.c_int64 * count).from_address(library.address(f"{name}_stamps"))
        return TimedCalls(executable, np.ctypeslib.as_array(stamps))


@dataclass(frozen=True)
class TimedCalls:
    """``stamps_ns`` holds the last run's times: its start, then the end of each call."""

    executable: Executable
    stamps_ns: NDArray[np.int64]


def load_plan(plan: Plan, name: str) -> InMemory:
    """Load *plan* and bind its constants.

    Raises:
        MissingDependency: This machine cannot run the plan's target.
    """
    if not plan.target.runs_on_host():
        if plan.target.kind == "cuda":
            raise MissingDependency(
                f"{name} is for {plan.target.cpu}, and this machine has no GPU that runs it"
            )
        lacking = ", ".join(missing_features(required_features(plan.target)))
        raise MissingDependency(
            f"{name} is for {plan.target.name} ({plan.target.triple}), which this machine cannot "
            f"run{': it lacks ' + lacking if lacking else ''}",
            hint="export it and run it there",
        )
    pool = make_pool(plan, name)
    kept = replace(plan, packs=(), raw=(), direct=(), raw_bytes=0)
    if plan.target.kind == "cuda":
        return InMemory(GpuExecutable(kept, pool, device_for(plan.target)), kept, pool)
    return InMemory(_executable(_link(kept, name), kept, name, pool), kept, pool)


def _link(plan: Plan, name: str, *, is_timed: bool = False) -> Library:
    """Link the code of all calls with an entry for them."""
    required = required_features(plan.target)
    source = EntrySource(plan, name, Constants.GIVEN, features=required, is_timed=is_timed)
    parts = ["init", "context_bytes", "run", "pool", *(["stamps"] if is_timed else [])]
    symbols = [f"{name}_{part}" for part in parts]
    return load([build_entry(source), *(code.code for code in plan.objects)], symbols=symbols)


def _executable(library: Library, plan: Plan, name: str, pool: NDArray[np.uint8]) -> Executable:
    init, context_bytes, run, where = (
        library.address(f"{name}_{part}") for part in ("init", "context_bytes", "run", "pool")
    )
    ctypes.c_void_p.from_address(where).value = pool.ctypes.data
    required = required_features(plan.target)
    code = Code(name, init, context_bytes, run, (library, pool), required)
    return Executable(code, plan.inputs, plan.outputs)


def make_pool(plan: Plan, name: str) -> NDArray[np.uint8]:
    """Pack the constants as ``run`` reads them, in one block so that large pages cover them.

    The bytes between them are 0, so that equal constants make equal pools.
    """
    pool = aligned_zeros((plan.pool_bytes,), np.uint8)
    for offset, array in plan.direct:
        pool[offset : offset + array.nbytes] = (
            np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        )
    if not plan.packs:
        return pool
    given = {offset: np.ascontiguousarray(array) for offset, array in plan.raw}
    size = max(step.code.workspace_bytes(1) for step in plan.packs)
    workspace = aligned_empty((max(1, size),), np.uint8)
    with load([*{step.code.symbol: step.code for step in plan.packs}.values()]) as library:
        for step in plan.packs:
            _pack(library, step, pool, given, _Scratch(plan, given), workspace, name)
    return pool


class _Scratch(dict[int, Array]):
    """Memory for intermediates of one ``bind`` step, by offset in ``RAW``."""

    def __init__(self, plan: Plan, given: dict[int, Array]) -> None:
        super().__init__()
        self._starts = sorted({*given, plan.raw_bytes} | {
            argument.offset
            for step in plan.packs for argument in step.args if argument.region is Memory.RAW
        })  # fmt: skip

    def __missing__(self, offset: int) -> Array:
        end = self._starts[self._starts.index(offset) + 1]
        self[offset] = aligned_empty((end - offset,), np.uint8)
        return self[offset]


def _pack(
    library: Library,
    step: Step,
    pool: NDArray[np.uint8],
    given: dict[int, Array],
    scratch: _Scratch,
    workspace: NDArray[np.uint8],
    name: str,
) -> None:
    table = np.zeros(len(step.args), np.uint64)
    for position, argument in enumerate(step.args):
        if argument.region is Memory.POOL:
            table[position] = pool.ctypes.data + argument.offset
        else:
            source = given.get(argument.offset)
            array = scratch[argument.offset] if source is None else source
            table[position] = array.ctypes.data
    function = _KERNEL(library.address(step.code.symbol))
    status = function(table.ctypes.data, workspace.ctypes.data, 1)
    if status:
        raise CodegenError(f"packing the constants of {name} failed with code {status}")
