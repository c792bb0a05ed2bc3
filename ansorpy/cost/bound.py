"""A lower bound for any schedule: arithmetic at peak rate, data from memory once."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from ansorpy.cost.analytic.machine import MachineModel
from ansorpy.cost.gpu.kernel import gpu_least_seconds
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Load, Reduce, Select, walk
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import ComputeOp, Tensor
from ansorpy.rules.algorithms.base import Definition

__all__ = ["least_seconds", "roofline_seconds"]


def roofline_seconds(task: Task, definitions: Iterable[Definition]) -> float:
    """Least seconds that any program of *task* can take, by the fastest of its *definitions*."""
    return min(least_seconds(task, definition.dag) for definition in definitions)


def least_seconds(task: Task, dag: ComputeDAG) -> float:
    """Least seconds that any schedule of *dag*, a definition of *task*, can take.

    It counts the sums of each run, one multiply-add per lane at the rate of the vector units, and
    the bytes that no cache can have held.  It omits everything that a schedule might avoid: what a
    condition may skip, transforms, traffic between caches.
    """
    if task.target.kind == "cuda":
        return gpu_least_seconds(task.target, dag)
    machine = MachineModel.of(task.target)
    running = [op for op in dag.computes if op not in dag.constant_ops]
    cycles = sum(_vectors(op, machine) for op in running) / machine.vector_ops_per_cycle
    compute_s = cycles / machine.clock_hz / task.threads
    return max(compute_s, _from_memory(task, dag, running, machine) / machine.dram_bytes_per_s)


def _vectors(op: ComputeOp, machine: MachineModel) -> float:
    """Least vector operations of a sum, with lanes as narrow as its narrowest operand."""
    body = op.body
    if not isinstance(body, Reduce) or any(isinstance(e, Select) for e in walk(body.source)):
        return 0.0
    loads = [e.dtype.bits for e in walk(body.source) if isinstance(e, Load)]
    lanes = machine.vector_bits / min([op.dtype.bits, *loads])
    return op.size * prod(axis.extent for axis in body.axes) / lanes


def _from_memory(
    task: Task, dag: ComputeDAG, running: list[ComputeOp], machine: MachineModel
) -> float:
    """Bytes that no cache holds when they are read: cold constants, and data far beyond caches."""
    constants: dict[Tensor, None] = {
        t: None for op in running for t in dag.reads(op) if t in dag.constant_ops
    }
    held = sum(t.bytes for t in constants)
    given = sum(t.bytes for t in dag.args if t not in dag.constant_ops)
    total = held + given + sum(t.bytes for t in dag.outputs)
    # Even a cache of half the size may serve half of what is read repeatedly.
    kept = 2 * machine.l3_bytes
    return max(float(held) if task.between_bytes > kept else 0.0, total - kept)
