"""Pack a plan's constants on this machine into the layout that its calls read."""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray

from ansorpy.codegen.llvm.objects.jit import Library, load
from ansorpy.codegen.llvm.objects.memory import aligned_empty, aligned_zeros
from ansorpy.errors import CodegenError
from ansorpy.runtime.control import Memory
from ansorpy.runtime.execution_plan import ExecutionPlan, Step
from ansorpy.runtime.ports import Array

__all__ = ["make_pool"]

_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)


def make_pool(plan: ExecutionPlan, name: str) -> NDArray[np.uint8]:
    """Pack the constants for ``run`` into one block, so that large pages can cover them.

    Padding between constants is zero, so equal constants give equal pools.
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

    def __init__(self, plan: ExecutionPlan, given: dict[int, Array]) -> None:
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
