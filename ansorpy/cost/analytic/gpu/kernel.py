"""The analytic model of GPU kernels: predicts seconds from the loops and the chip alone.

A kernel consists of all statements with the same outermost stage.  Each needs instructions to be
issued, cycles of the shared-memory banks, and bytes from the L2 cache and from memory; blocks
that run together on one multiprocessor hide each other's latencies.  The prediction is the largest
of these terms plus a fraction of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.gpu.machine import GpuMachine
from ansorpy.cost.analytic.gpu.statement import Resources, Statement, fills
from ansorpy.cost.nest_view import LeafView
from ansorpy.target import Target

__all__ = ["gpu_causes", "gpu_seconds"]

_OVERLAP = 0.1
"""Fraction of the smaller terms that the largest does not hide."""

_UNITS = 8.0
"""Granularity in which registers are allocated to threads."""

_PLAIN = 32.0
"""Registers of a thread that holds no partial sums."""

_START = 40.0
"""Instructions before and after the loops: block and thread indices, addresses."""

_AT_ONCE = ("fetched",)
"""Fields of :class:`Resources` whose waits overlap between statements, so the maximum counts."""


def gpu_seconds(
    target: Target, views: Sequence[LeafView], machine: GpuMachine | None = None
) -> Floats:
    """Predicted seconds of each candidate, whose kernels run one after another."""
    machine = machine or GpuMachine.of(target)
    total: Floats = np.zeros(1)
    for kernel in _kernels(views, machine).values():
        terms = _kernel_terms(kernel, machine)
        largest = np.maximum.reduce(np.broadcast_arrays(*terms))
        total = total + (largest + _OVERLAP * (sum(terms, np.zeros(1)) - largest))
        total = total + machine.launch_s
    return total


def gpu_causes(target: Target, views: Sequence[LeafView]) -> Floats:
    """Seconds by cause of each kernel, in the row of its first statement, launching it last."""
    machine = GpuMachine.of(target)
    at = {view.leaf.stage: row for row, view in enumerate(views)}
    parts = []
    for kernel in _kernels(views, machine).values():
        row = at[kernel[0].view.leaf.stage]
        causes = (*_kernel_terms(kernel, machine), np.full(1, machine.launch_s))
        parts.append((row, np.stack(np.broadcast_arrays(*causes), axis=1)))
    found = np.zeros((max(len(part) for _, part in parts), len(views), parts[0][1].shape[1]))
    for row, part in parts:
        found[:, row] = part
    return found


def _kernels(views: Sequence[LeafView], machine: GpuMachine) -> dict[str, list[Statement]]:
    """The statements of each kernel."""
    kernels: dict[str, list[Statement]] = {}
    shared = {view.written.name for view in views if fills(view)}
    written = [view.written for view in views if not view.written.alloc_depth]
    between = {tensor.name for tensor in written if not tensor.is_output}
    by_wgmma = any(view.written.team > machine.warp for view in views)
    for view in views:
        loops = view.leaf.loops
        name = loops[0].stage if loops else view.leaf.stage
        statement = Statement(view, machine, shared, between, by_wgmma=by_wgmma)
        kernels.setdefault(name, []).append(statement)
    return kernels


def _kernel_terms(statements: Sequence[Statement], machine: GpuMachine) -> tuple[Floats, ...]:
    """The terms of a kernel's seconds."""
    blocks, threads = np.ones(1), np.ones(1)
    needed = Resources(*(np.zeros(1) for _ in fields(Resources)))
    for statement in statements:
        spread, part = statement.view.spread, statement.resources()
        blocks = np.maximum(blocks, spread(statement.blocks))
        threads = np.maximum(threads, spread(statement.threads))
        for field in fields(Resources):
            so_far, more = getattr(needed, field.name), spread(getattr(part, field.name))
            at_once = field.name in _AT_ONCE
            setattr(needed, field.name, np.maximum(so_far, more) if at_once else so_far + more)
    return _terms(blocks, threads, needed, machine)


def _terms(
    blocks: Floats, threads: Floats, needed: Resources, machine: GpuMachine
) -> tuple[Floats, ...]:
    """Seconds for issuing, for banks, tensor cores, the L2 cache and memory, and of one block."""
    warps = np.ceil(threads / machine.warp)
    busiest = np.ceil(blocks / machine.processors)
    together = np.minimum(busiest, _together(warps, needed, machine))
    lanes = machine.schedulers * machine.warp / machine.products_per_cycle
    issued = np.maximum(needed.issued + _START, needed.arithmetic * lanes)
    issue = busiest * issued * warps / machine.schedulers / machine.clock_hz
    banks = busiest * needed.turns / machine.clock_hz
    tensor = busiest * needed.multiplied / machine.clock_hz
    used = np.minimum(blocks / machine.processors, 1.0)
    fetched = needed.l2 / (machine.l2_bytes_per_s * used)
    memory = needed.dram / (machine.dram_bytes_per_s * np.minimum(2 * used, 1.0))
    # For one block alone: its warps share the schedulers, and nothing hides its latencies.
    alone = issued * np.ceil(warps / machine.schedulers) + needed.waited
    alone = np.where(needed.multiplied > 0, _by_tensor_cores(warps, issued, needed, machine), alone)
    alone = alone + needed.stalled
    alone = np.maximum(alone, needed.fetched) + machine.memory_latency
    waves = np.ceil(busiest / together)
    return issue, banks, tensor, fetched, memory, waves * alone / machine.clock_hz


def _by_tensor_cores(
    warps: Floats, issued: Floats, needed: Resources, machine: GpuMachine
) -> Floats:
    """Cycles of a block that multiplies on tensor cores: the largest of three bounds.

    The bounds are the cycles of the tensor cores that its warps share, the work and waiting of one
    warp, and the instructions that all its warps issue.
    """
    shared = needed.multiplied * machine.schedulers / np.minimum(warps, machine.schedulers)
    one = issued + needed.waited + needed.multiplied * machine.schedulers / warps
    return np.maximum(np.maximum(shared, one), issued * np.ceil(warps / machine.schedulers))


def _together(warps: Floats, needed: Resources, machine: GpuMachine) -> Floats:
    """Blocks that one multiprocessor can run at once."""
    each = np.minimum(np.maximum(needed.registers, _PLAIN), machine.thread_registers)
    registers = np.ceil(each / _UNITS) * _UNITS * warps * machine.warp
    tiles = np.maximum(needed.tiles, 0.0) + machine.block_overhead_bytes
    limits = (
        np.full(1, machine.blocks),
        machine.threads / machine.warp / warps,
        machine.registers / registers,
        machine.shared_bytes / tiles,
    )
    found: Floats = np.floor(np.minimum.reduce(np.broadcast_arrays(*limits)))
    return np.maximum(found, 1.0)
