"""A task: one compute DAG to make fast on one target, under stated conditions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from ansorpy.errors import UsageError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.flops import flops
from ansorpy.ir.serialize import structural_hash
from ansorpy.ir.similarity import class_hash
from ansorpy.target import Target

__all__ = ["Task", "Warmth"]

Warmth: TypeAlias = Literal["warm", "l3", "cold"]
"""Where constants are when a program starts: in a core's own caches, the last one, memory."""


@dataclass(frozen=True, eq=False)
class Task:
    """What is tuned, and what a record of it may be used for.

    Args:
        threads: Threads the program runs on; at least 1.
        precision: ``"strict"`` leaves out algorithms with a stated error.  Either way sums are
            added up in any order, and bfloat16 dot instructions flush denormals.
        warmth: Where its constants are when the program starts: a network reads all the others
            between two calls.
        name: For messages; not part of the key.

    Raises:
        UsageError: Fewer than one thread, or an unknown precision.
    """

    dag: ComputeDAG
    target: Target
    threads: int
    precision: Literal["default", "strict"] = "default"
    warmth: Warmth = "warm"
    name: str = ""

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise UsageError(f"a task needs at least one thread, got {self.threads}")
        if self.precision not in ("default", "strict"):
            raise UsageError(
                f"unknown precision {self.precision!r}", hint="use 'default' or 'strict'"
            )

    @cached_property
    def key(self) -> str:
        """Text that is equal exactly when records of one task serve the other."""
        definition, threads = structural_hash(self.dag), str(self.threads)
        return "/".join((definition, self.target.key, threads, self.precision, self.warmth))

    @cached_property
    def class_key(self) -> str:
        """Text that is equal for tasks of one structure on one machine.

        Their shapes and threads may differ; they can be expected to reach similar throughput a
        core with similar schedules.
        """
        return "/".join((class_hash(self.dag), self.target.key, self.precision))

    @cached_property
    def flops(self) -> float:
        """Arithmetic operations of the definition."""
        return flops(self.dag)

    @cached_property
    def bytes(self) -> int:
        """Bytes that must move: every argument read once, every output written once."""
        return sum(op.bytes for op in (*self.dag.args, *self.dag.outputs))
