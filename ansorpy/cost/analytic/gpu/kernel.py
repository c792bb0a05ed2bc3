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

from ansorpy.cost.analytic.gpu.machine import GpuMachine
from ansorpy.cost.analytic.gpu.statement import Resources, Statement, fills
from ansorpy.cost.analytic.limits import Limits, bytes_moved, evaluations, running
from ansorpy.cost.nest_view import Floats, LeafView
from ansorpy.ir.analysis.conditions import least_added
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Reduce
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import ComputeOp
from ansorpy.rules.gpu.mma_choice import (
    best_choice,
    has_mma_sync,
    has_wgmma,
    may_round,
)
from ansorpy.target import Target

__all__ = ["gpu_causes", "gpu_least_seconds", "gpu_limits", "gpu_seconds"]

_OVERLAP = 0.1
"""Fraction of the smaller terms that the largest does not hide."""

_BOOST = 1.5
"""Upper limit on how many times faster a chip of the architecture can be than the assumed one."""

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


def gpu_least_seconds(target: Target, dag: ComputeDAG) -> float:
    """A lower bound on the seconds of *dag*: products at peak rate, and each datum moved once."""
    machine = GpuMachine.of(target)
    cycles = sum(_least_cycles(op, target, machine) for op in running(dag)) / machine.processors
    given = sum(t.bytes for t in (*dag.args, *dag.outputs))
    compute_s = cycles / machine.clock_hz / _BOOST
    return max(compute_s, (given - machine.l2_bytes) / machine.dram_bytes_per_s / _BOOST)


def gpu_limits(task: Task, dag: ComputeDAG, kernels: int) -> Limits:
    """What limits *kernels* kernels that compute *dag*, on the chip that the model assumes.

    All data pass through the L2 cache.  From memory come constants that the rest of the network has
    driven out of it, and what is too large for it.
    """
    machine = GpuMachine.of(task.target)
    lanes = machine.products_per_cycle
    cycles = sum(_product_cycles(op, task.target, machine, lanes) for op in running(dag))
    held, moved = bytes_moved(dag)
    cold = held if task.reuse_distance_bytes > machine.l2_bytes else 0.0
    from_memory = max(cold, moved - machine.l2_bytes)
    return Limits(
        max(moved / machine.l2_bytes_per_s, from_memory / machine.dram_bytes_per_s),
        cycles / machine.processors / machine.clock_hz,
        kernels * machine.launch_s,
    )


def _least_cycles(op: ComputeOp, target: Target, machine: GpuMachine) -> float:
    """Cycles of one multiprocessor for the products of float32 sums; 0 for others."""
    if op.dtype is not DType.FLOAT32:
        return 0.0
    return _product_cycles(op, target, machine, machine.schedulers * machine.warp)


def _product_cycles(op: ComputeOp, target: Target, machine: GpuMachine, lanes: float) -> float:
    """Cycles of one multiprocessor for the products of a sum, on tensor cores if permitted.

    Otherwise there are *lanes* products per cycle.
    """
    body = op.body
    if not isinstance(body, Reduce):
        return 0.0
    products = evaluations(op) * least_added(body)
    found = best_choice(op) if has_mma_sync(target) else None
    if found is None or not may_round(op, found):
        return products / lanes
    by_wgmma = has_wgmma(target)
    bits = machine.wgmma_bits_per_cycle if by_wgmma else machine.tensor_bits_per_cycle
    return products * found.by.types[1].bits / bits


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
