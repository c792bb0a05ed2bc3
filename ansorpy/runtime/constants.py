"""Pack a plan's constants on this machine into the layout that its calls read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ansorpy.arrays import Array
from ansorpy.codegen.llvm.objects.jit import LoadedObjects, load
from ansorpy.codegen.llvm.objects.memory import aligned_empty, aligned_zeros
from ansorpy.codegen.object_code import KERNEL
from ansorpy.errors import CodegenError
from ansorpy.ir.loops import Role
from ansorpy.ir.sizes import fixed
from ansorpy.ir.strides import padded
from ansorpy.runtime.control import Argument, MemoryRegion
from ansorpy.runtime.execution_plan import ExecutionPlan, PlanStep

__all__ = ["growing", "make_pool", "results", "scratch_bytes", "settled", "workspace_bytes"]

_WORTH = 9 / 8
"""Results that are larger by no more, because tiles are padded, are stored: they need no memory of
their own in each process."""


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
    raw = [np.ascontiguousarray(array) for array in plan.raw]
    scratch = aligned_empty((scratch_bytes(plan),), np.uint8)
    start = workspace_bytes(plan)

    def address(argument: Argument) -> int:
        if argument.region is MemoryRegion.RAW:
            return int(raw[argument.number].ctypes.data)
        base = pool.ctypes.data
        if argument.region is MemoryRegion.SCRATCH:
            base = scratch.ctypes.data + start
        return int(base + argument.offset)

    with load([*{step.code.symbol: step.code for step in plan.packs}.values()]) as library:
        for step in plan.packs:
            table = np.array([*map(address, step.args)], np.uint64)
            _pack(library, step, table, scratch, plan.threads, name)
    return pool


def _pack(
    library: LoadedObjects, step: PlanStep, table: Array, workspace: Array, threads: int, name: str
) -> None:
    function = KERNEL(library.address(step.code.symbol))
    status = function(table.ctypes.data, workspace.ctypes.data, threads)
    if status:
        raise CodegenError(f"packing the constants of {name} failed with code {status}")


def workspace_bytes(plan: ExecutionPlan) -> int:
    """The workspace that the calls of ``packs`` need; scratch memory begins with it."""
    each = (fixed(step.code.workspace_bytes(plan.threads)) for step in plan.packs)
    return padded(max(each, default=0))


def scratch_bytes(plan: ExecutionPlan) -> int:
    """The scratch memory that ``packs`` need: a workspace, and intermediate results behind it."""
    ends = (
        argument.offset + padded(spec.bytes)
        for step in plan.packs
        for argument, spec in zip(step.args, step.params, strict=True)
        if argument.region is MemoryRegion.SCRATCH and isinstance(argument.offset, int)
    )
    return workspace_bytes(plan) + max(ends, default=64)


def results(step: PlanStep) -> Iterator[tuple[int, int]]:
    """The places in the pool that *step*, one of ``packs``, fills: offsets and bytes."""
    for argument, spec in zip(step.args, step.params, strict=True):
        if spec.role is Role.OUTPUT and argument.region is MemoryRegion.POOL:
            assert isinstance(argument.offset, int)
            yield argument.offset, spec.bytes


def growing(plan: ExecutionPlan, versions: int = 1) -> list[PlanStep]:
    """Those of ``packs`` whose results take clearly more memory than the constants they read.

    Steps that read one constant are counted together; a constant that calls read, too, is in the
    file anyway.  Several *versions* of a program share its constants, but not what they pack.
    """
    found = []
    for steps in _by_source(plan.packs):
        read = {number for step in steps for number in _read(step)}
        made = sum(size for step in steps for _, size in results(step))
        if sum(plan.raw[number].nbytes for number in read) * _WORTH < made * versions:
            found += steps
    return found


def _by_source(packs: Sequence[PlanStep]) -> list[list[PlanStep]]:
    """*packs*, those that read a common constant in one list."""
    import networkx as nx

    graph = nx.Graph()
    for place, step in enumerate(packs):
        graph.add_node((place, True))
        graph.add_edges_from(((place, True), (number, False)) for number in _read(step))
    parts = nx.connected_components(graph)
    return [[packs[place] for place, is_step in sorted(part) if is_step] for part in parts]


def _read(step: PlanStep) -> set[int]:
    """The numbers of the original constants that *step* reads."""
    return {argument.number for argument in step.args if argument.region is MemoryRegion.RAW}


def settled(
    plan: ExecutionPlan, pool: NDArray[np.uint8], left: Collection[PlanStep]
) -> ExecutionPlan:
    """*plan* where only the packs *left* are still to be called; *pool* has all other constants.

    It holds no other original constants.
    """
    places = [(offset, array.nbytes) for offset, array in plan.direct]
    places += [place for step in plan.packs if step not in left for place in results(step)]
    read = sorted({number for step in left for number in _read(step)})

    def renumbered(argument: Argument) -> Argument:
        if argument.region is not MemoryRegion.RAW:
            return argument
        return replace(argument, number=read.index(argument.number))

    return replace(
        plan,
        packs=tuple(replace(s, args=tuple(map(renumbered, s.args))) for s in left),
        raw=tuple(plan.raw[number] for number in read),
        direct=tuple((offset, pool[offset : offset + size]) for offset, size in places),
    )
