"""What no schedule of a definition can beat: its products at peak, its data from memory once."""

from __future__ import annotations

from math import prod

from ansorpy.cost.analytic.machine import MachineModel
from ansorpy.cost.gpu.kernel import gpu_least_seconds
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Load, Reduce, Select, walk
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import ComputeOp, Tensor

__all__ = ["least_seconds"]


def least_seconds(task: Task, dag: ComputeDAG) -> float:
    """Seconds that *dag*, a definition of *task*, takes at least.

    Counted are the sums that run each time, a product and an addition a lane at the rate of the
    vector units, and the bytes that no cache can have held.  Everything that a schedule
    might avoid is left out: what a condition may skip, transforms, traffic between caches.
    """
    if task.target.kind == "cuda":
        return gpu_least_seconds(task.target, dag)
    machine = MachineModel.of(task.target)
    running = [op for op in dag.computes if op not in dag.constant_ops]
    cycles = sum(_vectors(op, machine) for op in running) / machine.vector_ops_per_cycle
    compute_s = cycles / machine.clock_hz / task.threads
    return max(compute_s, _from_memory(task, dag, running, machine) / machine.dram_bytes_per_s)


def _vectors(op: ComputeOp, machine: MachineModel) -> float:
    """Vector operations of a sum at least: its operands may be packed as tightly as they come."""
    body = op.body
    if not isinstance(body, Reduce) or any(isinstance(e, Select) for e in walk(body.source)):
        return 0.0
    loads = [e.dtype.bits for e in walk(body.source) if isinstance(e, Load)]
    lanes = machine.vector_bits / min([op.dtype.bits, *loads])
    return op.size * prod(axis.extent for axis in body.axes) / lanes


def _from_memory(
    task: Task, dag: ComputeDAG, running: list[ComputeOp], machine: MachineModel
) -> float:
    """Bytes that are in no cache when they are read: cold constants, and what is far too much."""
    constants: dict[Tensor, None] = {
        t: None for op in running for t in dag.reads(op) if t in dag.constant_ops
    }
    held = sum(t.bytes for t in constants)
    given = sum(t.bytes for t in dag.args if t not in dag.constant_ops)
    total = held + given + sum(t.bytes for t in dag.outputs)
    # A cache half as large may serve half of what is read again and again.
    kept = 2 * machine.l3_bytes
    return max(float(held) if task.between_bytes > kept else 0.0, total - kept)
