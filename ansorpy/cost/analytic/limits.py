"""What limits a program: the data it moves, its arithmetic, or the launches of its kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Literal

from ansorpy.ir.expr import Load, Reduce, walk
from ansorpy.ir.tensor import ComputeOp, Tensor

__all__ = ["Limit", "Limits", "bytes_read", "terms"]

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


def bytes_read(running: Iterable[ComputeOp]) -> dict[Tensor, float]:
    """Bytes read of each tensor: all of them, or fewer if there are few reads (a lookup table)."""
    reads: dict[Tensor, float] = {}
    for op in running:
        for e in walk(op.body):
            if isinstance(e, Load) and isinstance(e.source, Tensor):
                reads[e.source] = reads.get(e.source, 0.0) + terms(op) * e.dtype.bits / 8
    return {t: min(float(t.bytes), count) for t, count in reads.items()}


def terms(op: ComputeOp) -> int:
    """How often the operator's expression is evaluated."""
    summed = op.body.axes if isinstance(op.body, Reduce) else ()
    return op.size * prod(axis.extent for axis in summed)
