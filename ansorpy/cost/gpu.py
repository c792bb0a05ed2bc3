"""The closed-form model of GPU kernels: seconds from their loops and the chip alone.

A kernel is all statements with the same outermost stage.  Each gives instructions to issue, bytes
of shared memory, and bytes from the second-level cache and from memory; the blocks that run on one
multiprocessor together hide each other's waiting.  The slowest of these counts, and a share of the
others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import prod

import numpy as np

from ansorpy.cost.access import number_of
from ansorpy.cost.view import BufferView, Floats, LeafView
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import AxisKind, Reduce, Select, walk
from ansorpy.ir.loops import ForKind
from ansorpy.target import Target

__all__ = ["GpuMachine", "gpu_least_seconds", "gpu_seconds"]

BLOCKS = frozenset({ForKind.BLOCK_X, ForKind.BLOCK_Y, ForKind.BLOCK_Z})
THREADS = frozenset({ForKind.THREAD_X, ForKind.THREAD_Y, ForKind.THREAD_Z})
VTHREADS = frozenset({ForKind.VTHREAD})

_OVERLAP = 0.2
"""Share of the smaller terms that the largest does not hide."""

_SECTOR = 32.0
"""Bytes that memory moves at least."""

_VECTOR = 4.0
"""Elements that one instruction moves at most."""

_BOOST = 1.5
"""No chip of an architecture is more than this much faster than the one assumed."""

_AGAIN = 2.0
"""How often memory is read for what is more than the second-level cache holds."""

_SLOW = 8
"""Instructions of a division or an elementary function, about."""

_OWN_REGISTERS = 32.0
"""Registers of a thread beside those of its tile."""


@dataclass(frozen=True)
class GpuMachine:
    """Rates of one chip; per cycle means per cycle of one multiprocessor.

    Defaults: an H100 (NVIDIA, "H100 Tensor Core GPU Architecture").
    """

    processors: int = 132
    clock_hz: float = 1.7e9
    warp: int = 32
    warps_per_cycle: float = 4.0
    shared_bytes_per_cycle: float = 128.0
    l2_bytes_per_s: float = 5.5e12
    dram_bytes_per_s: float = 3.3e12
    l2_bytes: float = 50 * 2.0**20
    launch_s: float = 2.5e-6
    memory_latency: float = 600.0
    barrier_latency: float = 40.0
    step_latency: float = 30.0
    """Cycles from a load of shared memory to the sum that needs it."""
    threads: float = 2048.0
    blocks: float = 32.0
    shared_bytes: float = 200 * 1024.0
    registers: float = 65536.0

    @staticmethod
    def of(target: Target) -> GpuMachine:
        """The machine of *target*, as far as it is known."""
        return GpuMachine(
            processors=target.cores, l2_bytes=float(target.l2_bytes), warp=target.warp_size,
            threads=float(target.max_threads_per_sm), blocks=float(target.max_blocks_per_sm),
            shared_bytes=float(target.shared_per_sm_bytes),
            registers=float(target.registers_per_block),
        )  # fmt: skip


@dataclass
class _Asked:
    """What statements ask for, one number a candidate (or for all)."""

    registers: Floats
    """Of one thread."""
    tiles: Floats
    """Bytes of shared memory of one block."""
    issued: Floats
    """Instructions of one thread."""
    shared: Floats
    """Bytes one block moves to and from shared memory."""
    l2: Floats
    """Bytes the kernel moves to and from the second-level cache."""
    dram: Floats
    waited: Floats
    """Cycles a block waits when it is alone."""


def gpu_seconds(
    target: Target, views: Sequence[LeafView], machine: GpuMachine | None = None
) -> Floats:
    """Predicted seconds of each candidate; kernels run one after another."""
    machine = machine or GpuMachine.of(target)
    kernels: dict[str, list[_Statement]] = {}
    for view in views:
        loops = view.leaf.loops
        name = loops[0].stage if loops else view.leaf.stage
        kernels.setdefault(name, []).append(_Statement(view, machine))
    total: Floats = np.zeros(1)
    for statements in kernels.values():
        blocks, threads = np.ones(1), np.ones(1)
        asked = _Asked(*(np.zeros(1) for _ in fields(_Asked)))
        for statement in statements:
            spread, part = statement.view.spread, statement.asked()
            blocks = np.maximum(blocks, spread(statement.blocks))
            threads = np.maximum(threads, spread(statement.threads))
            for field in fields(_Asked):
                sum_so_far = getattr(asked, field.name)
                setattr(asked, field.name, sum_so_far + spread(getattr(part, field.name)))
        total = total + _kernel_seconds(blocks, threads, asked, machine)
    return total


def gpu_least_seconds(target: Target, dag: ComputeDAG) -> float:
    """Seconds that *dag* takes at least: its single-precision products at peak, its data once."""
    machine = GpuMachine.of(target)
    running = [op for op in dag.computes if op not in dag.constant_ops]
    products = sum(
        op.size * prod(axis.extent for axis in op.body.axes)
        for op in running
        if isinstance(op.body, Reduce) and op.dtype is DType.FLOAT32
        and not any(isinstance(e, Select) for e in walk(op.body.source))
    )  # fmt: skip
    given = sum(t.bytes for t in (*dag.args, *dag.outputs))
    a_cycle = machine.processors * machine.warps_per_cycle * machine.warp
    compute_s = products / a_cycle / machine.clock_hz / _BOOST
    return max(compute_s, (given - machine.l2_bytes) / machine.dram_bytes_per_s / _BOOST)


def _kernel_seconds(blocks: Floats, threads: Floats, asked: _Asked, machine: GpuMachine) -> Floats:
    warps = np.ceil(threads / machine.warp)
    registers = (asked.registers + _OWN_REGISTERS) * warps * machine.warp
    together: Floats = np.minimum(machine.blocks, np.floor(machine.threads / warps / machine.warp))
    together = np.minimum(together, np.floor(machine.registers / registers))
    together = np.minimum(together, np.floor(machine.shared_bytes / np.maximum(asked.tiles, 1.0)))
    together = np.maximum(together, 1.0)
    busiest = np.ceil(blocks / machine.processors)
    # A multiprocessor with few warps issues from those it has.
    resident = np.minimum(busiest, together) * warps
    rate = np.minimum(machine.warps_per_cycle, resident)
    issue = busiest * asked.issued * warps / rate / machine.clock_hz
    shared = busiest * asked.shared / machine.shared_bytes_per_cycle / machine.clock_hz
    used = np.minimum(blocks / machine.processors, 1.0)
    fetched = asked.l2 / (machine.l2_bytes_per_s * used)
    memory = asked.dram / (machine.dram_bytes_per_s * np.minimum(2 * used, 1.0))
    terms = (issue, shared, fetched, memory)
    largest = np.maximum(np.maximum(issue, shared), np.maximum(fetched, memory))
    total = largest + _OVERLAP * (sum(terms, np.zeros(1)) - largest)
    # Other blocks work while one waits.
    waiting = np.ceil(busiest / together) * asked.waited / machine.clock_hz
    found: Floats = np.maximum(total, waiting) + _OVERLAP * np.minimum(total, waiting)
    return found + machine.launch_s


class _Statement:
    """One statement of a kernel: how its work is divided, and what it asks for."""

    def __init__(self, view: LeafView, machine: GpuMachine):
        self.view = view
        self.machine = machine
        self.blocks, self.threads = self._product(BLOCKS), self._product(THREADS)
        self.mine = view.evaluations / (self.blocks * self.threads)
        """Evaluations of one thread."""
        kinds = [loop.kind for loop in view.leaf.loops]
        self.sums = AxisKind.REDUCE in kinds
        self.depth = len(kinds) - kinds[::-1].index(AxisKind.REDUCE) if self.sums else len(kinds)
        """Inside the last reduce loop, where a thread's tile is."""
        self.tile = view.inner_prod[self.depth] * self._product(VTHREADS)

    def asked(self) -> _Asked:
        """What the statement asks for."""
        view, ahead = self.view, number_of(self.view.leaf.instances)
        zeros = np.zeros(view.rows)
        found = _Asked(*(zeros for _ in fields(_Asked)))
        found.issued = self.mine * self._instructions
        for buffer in view.buffers:
            is_shared = self._is_shared(buffer)
            found.issued = found.issued + self._loads(buffer)
            if is_shared:
                moved = self.mine if buffer.is_written else self._loads(buffer)
                found.shared = found.shared + moved * self.threads * float(buffer.elem_bytes)
            elif not buffer.alloc_depth:
                l2 = self._moved(buffer)
                once = np.minimum(buffer.elems * float(buffer.elem_bytes), l2)
                found.l2 = found.l2 + l2
                again = np.minimum(l2, _AGAIN * once)
                found.dram = found.dram + np.where(once > self.machine.l2_bytes, again, once)
            if is_shared and buffer.is_written:
                found.tiles = zeros + buffer.elems * float(buffer.elem_bytes) * ahead
        if self.fills:
            latency = self.machine.memory_latency / ahead + self.machine.barrier_latency
            found.waited = self._steps * latency
        else:
            found.registers = self.tile if self.sums else zeros
            found.waited = self.mine / self.tile * self.machine.step_latency
        return found

    def _product(self, kinds: frozenset[ForKind], among: Iterable[int] | None = None) -> Floats:
        """Iterations of all loops of these kinds."""
        total: Floats = np.ones(self.view.rows)
        for n, loop in enumerate(self.view.leaf.loops):
            if loop.annotation in kinds and (among is None or n in among):
                total = total * self.view.extent[n]
        return total

    @cached_property
    def _instructions(self) -> float:
        """Arithmetic of one evaluation; a product that is added is one instruction."""
        ops = self.view.body_ops.floats
        fused = min(ops.addsub, ops.mul)
        plain = ops.addsub + ops.mul - fused + ops.cmp
        return max(1.0, plain + _SLOW * (ops.divmod + ops.mathfunc))

    @cached_property
    def fills(self) -> bool:
        """True for what threads of another stage's loops do together: filling a tile."""
        leaf = self.view.leaf
        own = leaf.loops[leaf.own_from :]
        return leaf.own_from > 0 and any(loop.annotation in THREADS for loop in own)

    def _is_shared(self, buffer: BufferView) -> bool:
        """True for a tile that all threads of a block read or write."""
        if not buffer.alloc_depth:
            return False
        outer = range(buffer.alloc_depth)
        loops = self.view.leaf.loops
        reads = any(n in buffer.moves and loops[n].annotation in THREADS for n in outer)
        return reads or (self.fills and buffer.is_written)

    def _loads(self, buffer: BufferView) -> Floats:
        """Load instructions of one thread: its tile keeps operands in registers."""
        if buffer.is_written:
            return np.zeros(self.view.rows)
        vector = np.clip(buffer.run[self.depth], 1.0, _VECTOR)
        tile = np.ceil(buffer.region[self.depth] / vector)
        return tile * self._product(VTHREADS, buffer.moves) * self.mine / self.tile

    def _moved(self, buffer: BufferView) -> Floats:
        """Bytes between the kernel and a tensor, with what comes along unasked."""
        count: Floats = self.mine
        if self.sums and buffer.is_written:  # once, after what is summed up
            for n, loop in enumerate(self.view.leaf.loops):
                count = count / self.view.extent[n] if loop.kind is AxisKind.REDUCE else count
        elif self.sums:
            tile = buffer.region[self.depth] * self._product(VTHREADS, buffer.moves)
            count = tile * self.mine / self.tile
        moved = count * self.threads * self.blocks * float(buffer.elem_bytes)
        return moved * self._waste(buffer)

    def _waste(self, buffer: BufferView) -> Floats:
        """How much more is moved than asked for, where elements of a warp lie apart."""
        loops = [n for n, x in enumerate(self.view.leaf.loops) if x.annotation in THREADS]
        worst: Floats = np.ones(self.view.rows)
        for access in buffer.accesses:
            if not loops or loops[-1] not in access.flat:
                continue
            inner = np.maximum(access.run[loops[-1] + 1], 1.0)
            flat = access.flat[loops[-1]]
            flat = np.where(np.isfinite(flat), flat, _SECTOR)
            most = np.maximum(_SECTOR / (buffer.elem_bytes * inner), 1.0)
            worst = np.maximum(worst, np.clip(flat / inner, 1.0, most))
        return worst

    @cached_property
    def _steps(self) -> Floats:
        """Times that the threads of a block wait for each other at this statement."""
        outer = range(self.view.leaf.own_from)
        return self._product(frozenset({ForKind.SERIAL}), outer)
