"""What limits a program: the data it moves, its arithmetic, or the launches of its kernels."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Load, Reduce, walk
from ansorpy.ir.tensor import ComputeOp, Tensor

__all__ = ["Limit", "Limits", "bytes_moved", "evaluations", "running"]

Limit = Literal["memory", "arithmetic", "launches"]


@dataclass(frozen=True)
class Limits:
    """Seconds that a program needs at least, if it did only one thing at the machine's full rate.

    Args:
        memory_s: To move its data, those that no cache can have held from memory.
        compute_s: For the products of its sums.
        launch_s: To launch its kernels one after another in a graph; 0 on CPUs.
    """

    memory_s: float
    compute_s: float
    launch_s: float = 0.0

    @property
    def least_s(self) -> float:
        """The largest of the three."""
        return max(self.memory_s, self.compute_s, self.launch_s)

    @property
    def bound(self) -> Limit:
        """Which of the three is the largest."""
        named: dict[Limit, float] = {
            "memory": self.memory_s, "arithmetic": self.compute_s, "launches": self.launch_s,
        }  # fmt: skip
        return max(named, key=lambda name: named[name])


def running(dag: ComputeDAG) -> list[ComputeOp]:
    """The operators that every call computes."""
    return [op for op in dag.computes if op not in dag.constant_ops]


def bytes_moved(dag: ComputeDAG) -> tuple[float, float]:
    """(bytes of constants that are read, bytes of all tensors that are read or written).

    A tensor is read whole, or in part if there are few reads (a lookup table).
    """
    reads: dict[Tensor, float] = {}
    for op in running(dag):
        for e in walk(op.body):
            if isinstance(e, Load) and isinstance(e.source, Tensor):
                reads[e.source] = reads.get(e.source, 0.0) + evaluations(op) * e.dtype.bits / 8
    read = {t: min(float(t.bytes), count) for t, count in reads.items()}
    held = sum(count for t, count in read.items() if t in dag.constant_ops)
    given = sum(count for t, count in read.items() if t in dag.args and t not in dag.constant_ops)
    return held, held + given + sum(t.bytes for t in dag.outputs)


def evaluations(op: ComputeOp) -> int:
    """How often the operator's expression is evaluated."""
    summed = op.body.axes if isinstance(op.body, Reduce) else ()
    return op.size * prod(axis.extent for axis in summed)
