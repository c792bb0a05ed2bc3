"""A lower bound for any schedule on a CPU: arithmetic at peak rate, data moved once."""

from __future__ import annotations

from ansorpy.cost.analytic.cpu.machine import MachineModel
from ansorpy.cost.analytic.limits import Limits, bytes_moved, evaluations, running
from ansorpy.ir.analysis.conditions import least_added
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Load, Reduce, walk
from ansorpy.ir.sizes import fixed
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import ComputeOp

__all__ = ["cpu_limits", "handover_cpu_seconds"]


def handover_cpu_seconds(task: Task, machine: MachineModel) -> float:
    """Seconds that *task* takes longer between other calls than when it is timed alone.

    Alone, it finds what it read and wrote a moment ago in the last-level cache.  In a network, what
    exceeds the cores' own caches comes from memory.  In BERT at 461 tokens, three kernels of an
    attention took 5.1 ms, alone 3.65 ms; this says 4.8 ms.
    """
    given = sum(fixed(op.bytes) for op in task.dag.args if not op.constant)
    passed = given + sum(fixed(op.bytes) for op in task.dag.outputs)
    beyond = passed - task.threads * machine.l2_bytes
    return max(beyond, 0) / machine.dram_bytes_per_s


def cpu_limits(task: Task, dag: ComputeDAG, machine: MachineModel) -> Limits:
    """What limits any schedule of *dag*, a definition of *task*, on *machine*.

    It counts the sums of each run, one multiply-add per lane at the rate of the vector units, and
    the bytes that the caches cannot have held.  It omits work that a schedule might avoid: terms
    that a condition skips, transforms, and values passed between stages.
    """
    cycles = sum(_vectors(op, machine) for op in running(dag)) / machine.vector_ops_per_cycle
    compute_s = cycles / machine.clock_hz / task.threads
    return Limits(_moving_s(task, dag, machine), compute_s)


def _vectors(op: ComputeOp, machine: MachineModel) -> float:
    """Least vector operations of a sum, with lanes of its narrowest operand's width."""
    body = op.body
    if not isinstance(body, Reduce):
        return 0.0
    loads = [e.dtype.bits for e in walk(body.source) if isinstance(e, Load)]
    lanes = machine.vector_bits / min([op.dtype.bits, *loads])
    return evaluations(op) * least_added(body) / lanes


def _moving_s(task: Task, dag: ComputeDAG, machine: MachineModel) -> float:
    """Seconds to move data that no cache holds: cold constants, and data that are too large."""
    held, total = bytes_moved(dag)
    # A cache of half the data's size may still serve half of the repeated reads.
    kept, own = 2 * machine.l3_bytes, 2 * task.threads * machine.l2_bytes
    from_memory, beyond_l2 = (
        max(held if task.reuse_distance_bytes > size else 0.0, total - size) for size in (kept, own)
    )
    l3_rate = min(machine.l3_bytes_per_s, task.threads * machine.l3_bandwidth * machine.clock_hz)
    return max(from_memory / machine.dram_bytes_per_s, beyond_l2 / l3_rate)
