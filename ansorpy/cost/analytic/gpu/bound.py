"""Lower bounds for any schedule on a GPU: products at peak rate, data moved once."""

from __future__ import annotations

from ansorpy.cost.analytic.gpu.machine import GpuMachine
from ansorpy.cost.analytic.limits import Limits, bytes_moved, evaluations, running
from ansorpy.ir.analysis.conditions import least_added
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Reduce
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import ComputeOp
from ansorpy.rules.gpu.mma_choice import best_choice, has_mma_sync, has_wgmma, may_round
from ansorpy.target import Target

__all__ = ["gpu_least_seconds", "gpu_limits"]

_BOOST = 1.5
"""Upper limit on how many times faster a chip of the architecture can be than the assumed one."""


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
