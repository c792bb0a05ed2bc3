"""Resources that one statement of a GPU kernel needs, and how threads divide its work."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from ansorpy.arrays import Floats, Masks
from ansorpy.codegen.cuda.passes.residency import ADDRESSES, BESIDE
from ansorpy.codegen.cuda.passes.unroll_registers import MOST_STATEMENTS
from ansorpy.cost.access import AccessView, number_of
from ansorpy.cost.analytic.gpu.banks import BANK_BYTES, bank_cycles
from ansorpy.cost.analytic.gpu.machine import GpuMachine
from ansorpy.cost.analytic.gpu.straight_line import Body
from ansorpy.cost.analytic.gpu.warps import held_resources
from ansorpy.cost.nest_view import BufferView, LeafView
from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import BLOCK_INDICES, THREAD_INDICES, ForKind
from ansorpy.schedule.lowering.gpu.pipeline import LEAST_BYTES

__all__ = ["Resources", "Statement", "fills"]

_SECTOR = 32.0
"""Bytes of the smallest memory transfer."""

_AGAIN = 2.0
"""Maximum number of times that data larger than the L2 cache are read from memory."""

_SLOW = 8
"""Approximate instructions of a division or an elementary function."""

_COPY, _DIVISION, _COMPARISON = 3.0, 5.0, 2.0
"""Instructions to address a copy, for each division by a number other than a power of two, and for
each comparison in its condition."""

_GUARDED = 6.0
"""Instructions to load an element under a condition."""

_LOOP = 8.0
"""Instructions around a straight-line body: its counter and its first addresses."""

_TURN = 16.0
"""Instructions around the tiles of one iteration: the wait, the barrier, the tiles' addresses."""

_CHOICE = 3.0
"""Additional instructions for a product that is selected by its own condition."""

_EXCHANGE = 12.0
"""Instructions for a sum that threads share, per result and round of the exchange."""


@dataclass
class Resources:
    """Resources that statements need, one number per candidate (or one for all)."""

    registers: Floats
    """Registers of one thread."""
    tiles: Floats
    """Bytes of shared memory of one block."""
    issued: Floats
    """Instructions of one thread."""
    arithmetic: Floats
    """Floating-point arithmetic instructions among ``issued``."""
    turns: Floats
    """Cycles for which one block occupies the banks of shared memory, or the L1 cache."""
    l2: Floats
    """Bytes that the kernel moves to and from the L2 cache."""
    dram: Floats
    waited: Floats
    """Cycles that a block waits when it runs alone, in addition to those in which it issues."""
    stalled: Floats
    """Cycles in which no warp of a block works."""
    fetched: Floats
    """Cycles that a block's copies take when it runs alone: the sum of their latencies."""
    multiplied: Floats
    """Cycles for which one block needs all tensor cores of a multiprocessor."""


def fills(view: LeafView) -> bool:
    """True for a statement that fills a shared tile with the threads of another stage's loops."""
    own = view.leaf.loops[view.leaf.own_from :]
    sums = any(loop.kind is AxisKind.REDUCE for loop in own)
    is_tile = view.leaf.own_from > 0 and not sums and not view.written.team
    return is_tile and any(loop.index in THREAD_INDICES for loop in own)


class Statement:
    """The resources that one statement needs; *shared* names the tiles that its kernel fills.

    *between* names the tensors that one kernel of the program writes for another.  *by_wgmma* is
    True if asynchronous warpgroup instructions read the tiles; a group of these may still be in
    flight while the next one starts.
    """

    def __init__(
        self,
        view: LeafView,
        machine: GpuMachine,
        shared: Collection[str],
        between: Collection[str] = (),
        *,
        by_wgmma: bool = False,
    ):
        self.view = view
        self.machine = machine
        self.shared = shared
        self.between = between
        self.by_wgmma = by_wgmma
        self.blocks, self.threads = self._product(BLOCK_INDICES), self._product(THREAD_INDICES)
        self.mine = view.evaluations / (self.blocks * self.threads)
        """Evaluations per thread, or per warp where the lanes of a warp cooperate."""
        self.sums = AxisKind.REDUCE in [loop.kind for loop in view.leaf.loops]
        depths = [b.alloc_depth for b in view.buffers if b.name in shared]
        self.body = Body(view, max(depths, default=0))
        self.tile = self.body.sums * self._product((ForKind.VTHREAD,))
        self.bodies = self.mine / (self.tile * self.body.steps)
        """How often a thread runs the straight-line code."""

    def resources(self) -> Resources:
        """The resources that the statement needs."""
        zeros = np.zeros(self.view.rows)
        found = Resources(*(zeros for _ in fields(Resources)))
        found.tiles = zeros + number_of(self.view.leaf.shared_bytes)
        if self.view.written.team:
            held_resources(self, found)
            return found
        arithmetic = self._instructions + _CHOICE * self._chooses_inside
        found.issued = self.mine * self._held * arithmetic + self.bodies * _LOOP * self.sums
        if fills(self.view):
            self._fill(found)
        else:
            found.arithmetic = self.mine * self._held * arithmetic
            self._compute(found)
        for buffer in self.view.buffers:
            if not buffer.alloc_depth:
                self.from_memory(found, buffer)
        return found

    def _fill(self, found: Resources) -> None:
        """Add the cost of filling a tile of shared memory."""
        instances = number_of(self.view.leaf.instances)
        # One more tile is in use where a group of instructions stays in flight.
        under_way = np.where(self.by_wgmma & (np.asarray(instances) > 2), 1.0, 0.0)
        tile, width = self.view.written, self._copied
        bytes_each = float(tile.elem_bytes)
        # The threads fill tiles synchronously if these are computed, or copied in tiny pieces.
        by_copies = self._is_copy & (width * bytes_each >= LEAST_BYTES)
        ahead = np.where(by_copies, instances - under_way, 1.0)
        copies = self.mine / width
        compared = _COMPARISON * self.view.body_ops.ints.cmp
        placed = copies * (_COPY + _DIVISION * self._quotients + compared)
        found.issued = found.issued / width + placed
        if not self._is_copy:
            found.issued = found.issued + self.mine * self._read * _GUARDED
        by_threads = np.asarray(number_of(self.view.leaf.bulk)) == 0  # not by the copy engine
        found.issued = found.issued * by_threads + self._steps * _TURN
        stores = copies * self.threads / self.machine.warp * by_threads
        found.turns = np.maximum(self.mine * self.threads * bytes_each / BANK_BYTES, stores)
        found.stalled = self._steps * self.machine.barrier_latency
        if not self._is_from_memory:
            found.stalled = found.stalled + self._steps * self.machine.step_latency
            return
        latency = self.machine.memory_latency
        alone = np.where(ahead > 1, latency / np.maximum(ahead - 1, 1), latency)
        found.fetched = self._steps * alone + latency
        # Without copies in flight, a block also waits for the bytes before it computes.
        moved = self.mine * self.threads * bytes_each / self.machine.l2_bytes_per_cycle
        drained = np.where(self.by_wgmma & (under_way == 0), self.machine.wgmma_latency, 0.0)
        found.stalled = found.stalled + self._steps * drained
        found.stalled = found.stalled + np.where(ahead > 1, 0.0, self._steps * latency + moved)

    def _compute(self, found: Resources) -> None:
        operands, latency = np.zeros(self.view.rows), 0.0
        for buffer in self.view.buffers:
            in_shared = buffer.name in self.shared
            if buffer.is_written or (buffer.alloc_depth and not in_shared):
                continue
            loads, width, along = self._loads(buffer)
            loads = loads * self._held
            found.issued = found.issued + loads
            warps = np.ceil(self.threads / self.machine.warp)
            found.turns = found.turns + loads * warps * self.turns(buffer, width)
            operands = operands + along * self._operands(buffer)
            reached = self.machine.step_latency if in_shared else self.machine.l2_latency
            latency = max(latency, reached)
        words = max(1.0, self.view.written.elem_bytes / 4)
        if self.sums:
            beside = np.maximum(BESIDE, operands + ADDRESSES)
            found.registers = self.tile * words + beside
            found.issued = found.issued + self._spilled(found.registers)
        # The compiler loads for several iterations at once where they do not depend on each other.
        found.waited = np.where(self.sums, self.bodies, np.ceil(self.bodies / 4)) * latency
        shared_by = self._reducing_threads
        rounds = np.ceil(np.log2(np.maximum(shared_by, 1.0)))
        results = np.where(shared_by > 1, self.tile, 0.0)
        found.issued = found.issued + results * _EXCHANGE * (1 + rounds)
        found.waited = found.waited + rounds * self.machine.step_latency

    def from_memory(self, found: Resources, buffer: BufferView) -> None:
        """Add the cost of moving *buffer*, a tensor, from or to memory."""
        l2 = self._moved(buffer)
        once = np.minimum(buffer.elems * float(buffer.elem_bytes), l2)
        found.l2 = found.l2 + l2
        again = np.minimum(l2, _AGAIN * once)
        # What the program's own kernels have just written is still in the cache.
        fits = np.where(buffer.name in self.between, 0.0, once)
        found.dram = found.dram + np.where(once > self.machine.l2_bytes, again, fits)
        if buffer.is_written:
            run = np.clip(buffer.run[self.body.depth], 1.0, 4.0)
            found.issued = found.issued + self._stored / run

    def _product(self, kinds: Collection[ForKind], among: Iterable[int] | None = None) -> Floats:
        """Iterations of all loops of these kinds."""
        total: Floats = np.ones(self.view.rows)
        for n, loop in enumerate(self.view.leaf.loops):
            if loop.index in kinds and (among is None or n in among):
                total = total * self.view.extent[n]
        return total

    @cached_property
    def _instructions(self) -> float:
        """Arithmetic instructions of one evaluation; a multiply-add is one instruction."""
        return max(0.0 if fills(self.view) else 1.0, self.arithmetic_each)

    @cached_property
    def arithmetic_each(self) -> float:
        """As above, but 0 for statements that only move values."""
        ops = self.view.body_ops.floats
        fused = min(ops.addsub, ops.mul)
        plain = ops.addsub + ops.mul - fused + ops.cmp
        return plain + _SLOW * (ops.divmod + ops.mathfunc)

    @cached_property
    def _chooses_inside(self) -> Masks:
        """Where the condition of a sum varies within the straight-line code.

        There each product is selected separately, and its operands are loaded separately.
        """
        found: Masks = np.zeros(self.view.rows, dtype=bool)
        for n, mask in self.view.changes_guard.items():
            virtual = self.view.leaf.loops[n].index is ForKind.VTHREAD
            found = found | (mask & (virtual | self.body.inside(n)))
        return found

    @cached_property
    def _held(self) -> Floats:
        """The fraction of a sum's steps that a thread executes: those where its condition holds."""
        return np.where(self._chooses_inside, 1.0, self.view.leaf.held)

    # Filling tiles

    @cached_property
    def _read(self) -> int:
        """Number of elements read to compute one element of the tile."""
        reads = (b for b in self.view.buffers if not b.is_written)
        return sum(access.times for buffer in reads for access in buffer.accesses)

    @property
    def _is_from_memory(self) -> bool:
        """False for a tile that is computed from data that the block already holds."""
        return any(not (b.is_written or b.alloc_depth) for b in self.view.buffers)

    @property
    def _is_copy(self) -> bool:
        return self._read <= 1 and not self._instructions

    @cached_property
    def _rows(self) -> list[Floats]:
        """Extents of the tile, outermost first."""
        shape = [number_of(size) for size in self.view.leaf.write.shape]
        return [np.zeros(self.view.rows) + size for size in shape]

    @cached_property
    def _copied(self) -> Floats:
        """Elements that one copy moves: the vectorized loops' extent if they are contiguous."""
        width: Floats = np.ones(self.view.rows)
        for n in self.view.vector if self._is_copy else ():
            width = width * np.where(self.view.vector[n], self.view.extent[n], 1.0)
        for buffer in self.view.buffers:
            for access in () if buffer.is_written else buffer.accesses:
                aligned = self._aligned(access, width)
                width = np.where(aligned, np.minimum(width, access.run[0]), 1.0)
        return width

    @cached_property
    def _quotients(self) -> Floats:
        """Number of divisions, not by powers of two, in the address of a copy."""
        total: Floats = np.zeros(self.view.rows)
        inner = [*self._rows[1:-1], self._rows[-1] / self._copied] if len(self._rows) > 1 else []
        for extent in inner:
            whole = np.maximum(extent, 1.0).astype(np.int64)
            total = total + ((whole & (whole - 1)) != 0)
        return total

    @cached_property
    def _steps(self) -> Floats:
        """How often the threads of a block fill the tile."""
        outer = range(self.view.leaf.own_from)
        return self._product((ForKind.SERIAL,), outer)

    # Computing

    def _loads(self, buffer: BufferView) -> tuple[Floats, Floats, Floats]:
        """Loads of one thread, bytes per load, and elements along the reduction per load."""
        loads, most_along = np.zeros(self.view.rows), np.ones(self.view.rows)
        width = np.full(self.view.rows, float(buffer.elem_bytes))
        virtual = self._product((ForKind.VTHREAD,), buffer.moves)
        for access in buffer.accesses:
            together, along = self._neighbours(access, 16 // buffer.elem_bytes)
            each = np.ceil(self.body.elements(access) / together)
            one_by_one = access.times * each * virtual * self.bodies
            loads = loads + np.minimum(one_by_one, access.times * self._loaded_once(access))
            width = np.maximum(width, together * float(buffer.elem_bytes))
            most_along = np.maximum(most_along, along)
        return loads, width, most_along

    def _loaded_once(self, access: AccessView) -> Floats:
        """Loads of one thread if sums that are written out one after another share their elements,
        as those of a transform by a constant matrix do; infinite where they are not written out.
        """
        found = np.full(self.view.rows, np.inf)
        written_out = np.ones(self.view.rows, dtype=bool)
        for n in reversed(range(self.view.depth)):
            written_out = written_out & self._is_written_out(n)
            whole = self.view.inner_prod[n]
            fits = written_out & (whole <= MOST_STATEMENTS)
            found = np.where(fits, access.region[n] * self.mine / whole, found)
        return found

    def _is_written_out(self, loop: int) -> Masks:
        """Where the iterations of a loop follow each other in straight-line code."""
        given = self.view.leaf.loops[loop]
        alone: Masks = np.asarray(self.view.extent[loop] == 1)
        if given.index.is_bound:
            return alone
        if given.kind is AxisKind.REDUCE:
            return alone | self.body.is_whole(loop)
        return alone | self.view.unroll.get(loop, alone) | self.view.vector.get(loop, alone)

    def _neighbours(self, access: AccessView, most: int) -> tuple[Floats, Floats]:
        """Elements moved by one load, at most *most*, and how many of them are steps of the sum."""
        run = np.where(self._chooses_inside, 1.0, self.body.run(access))
        found: Floats = np.ones(self.view.rows)
        for width in (2.0, 4.0, 8.0):
            if width <= most:
                whole = (run % width == 0) & self._aligned(access, np.full(len(run), width))
                found = np.where(whole, width, found)
        along = np.where(self.body.is_along(access), found, 1.0)
        return found, along

    def _aligned(self, access: AccessView, width: Floats) -> np.ndarray:
        """Where every loop that moves the access beyond a row moves it by a multiple of *width*."""
        fine = np.ones(self.view.rows, dtype=bool)
        for n, flat in access.flat.items():
            jump = np.where(np.isfinite(flat), flat, 1.0)
            fine &= (jump % width == 0) | (jump < width) & self.body.inside(n)
        return fine

    def turns(self, buffer: BufferView, width: Floats) -> Floats:
        """Cycles for which one load of a warp occupies the banks."""
        loops = self.view.leaf.loops
        lanes = [n for n in reversed(range(len(loops))) if loops[n].index in THREAD_INDICES]
        worst: Floats = np.ones(self.view.rows)
        for access in buffer.accesses:
            strides = [self._jump(access, n) * buffer.elem_bytes for n in lanes]
            extents = [self.view.extent[n] for n in lanes]
            worst = np.maximum(worst, bank_cycles(extents, strides, width, self.machine.warp))
        return worst

    def _jump(self, access: AccessView, loop: int) -> Floats:
        flat = access.flat.get(loop)
        if flat is None:
            return np.zeros(self.view.rows)
        return np.where(np.isfinite(flat), flat, 1.0)

    def _operands(self, buffer: BufferView) -> Floats:
        """Elements of *buffer* that one step needs."""
        return buffer.region[self.body.depth] * self._product((ForKind.VTHREAD,), buffer.moves)

    def _spilled(self, registers: Floats) -> Floats:
        """Instructions to spill and reload values that have no register, over all bodies."""
        return 2 * np.maximum(registers - self.machine.thread_registers, 0.0) * self.bodies

    @cached_property
    def _reducing_threads(self) -> Floats:
        """Threads that share one sum."""
        total: Floats = np.ones(self.view.rows)
        for n, loop in enumerate(self.view.leaf.loops):
            if loop.index in THREAD_INDICES and loop.kind is AxisKind.REDUCE:
                total = total * self.view.extent[n]
        return total

    # Memory

    @cached_property
    def _stored(self) -> Floats:
        """Results that one thread stores, each once, after its reduction."""
        count = self.mine
        for n, loop in enumerate(self.view.leaf.loops):
            if loop.kind is AxisKind.REDUCE and loop.index not in THREAD_INDICES:
                count = count / self.view.extent[n]
        return count

    def _moved(self, buffer: BufferView) -> Floats:
        """Bytes moved between the kernel and a tensor, including unused parts of sectors."""
        if self.sums and buffer.is_written:
            count = self._stored
        elif self.sums and not fills(self.view):
            tile = buffer.region[self.body.depth] * self._product((ForKind.VTHREAD,), buffer.moves)
            count = tile * self.mine / self.tile
        else:
            count = self.mine
        moved = count * self.threads * self.blocks * float(buffer.elem_bytes)
        return moved * self._waste(buffer)

    def _cut(self, access: AccessView) -> Floats:
        """Factor by which reads exceed the size of tile rows, because rows end inside sectors."""
        segment = self._rows[-1] * self.view.written.elem_bytes
        whole = access.run[0] > self._rows[-1]
        sectors = np.ceil(segment / _SECTOR) + (segment % _SECTOR != 0)
        return np.where(whole, sectors * _SECTOR / segment, 1.0)

    def _waste(self, buffer: BufferView) -> Floats:
        """Factor by which transfers exceed the data needed, if a warp's elements are scattered."""
        loops = [n for n, x in enumerate(self.view.leaf.loops) if x.index in THREAD_INDICES]
        worst: Floats = np.ones(self.view.rows)
        for access in buffer.accesses:
            if not loops or loops[-1] not in access.flat:
                continue
            inner = np.maximum(access.run[loops[-1] + 1], 1.0)
            flat = self._jump(access, loops[-1])
            if fills(self.view):
                worst = np.maximum(worst, self._cut(access))
            most = np.maximum(_SECTOR / (buffer.elem_bytes * inner), 1.0)
            worst = np.maximum(worst, np.clip(flat / inner, 1.0, most))
        return worst
