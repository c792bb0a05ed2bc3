"""A task: one compute DAG to optimise for one target, under stated conditions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Literal, Self, TypeAlias, get_args

from ansorpy.errors import UsageError
from ansorpy.ir.analysis.flops import flops
from ansorpy.ir.analysis.similarity import class_hash
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.sizes import fixed
from ansorpy.ir.text.printer import text
from ansorpy.ir.text.serialize import structural_hash
from ansorpy.notebook import card
from ansorpy.target import Target

__all__ = ["Precision", "Task"]


Precision: TypeAlias = Literal["default", "strict", "tf32"]
"""Permitted approximations: ``"strict"`` permits none, ``"default"`` algorithms with a stated
error, ``"tf32"`` also permits rounding float32 factors to TF32."""


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """A definition to tune under stated conditions; records apply to tasks with the same ``key``.

    Args:
        threads: Number of threads the program runs on; at least 1.
        precision: ``"strict"`` excludes algorithms with a stated error, ``"tf32"`` lets tensor
            cores of a GPU round the factors of float32 products to TF32.  With any precision, sums
            may be reordered, and bfloat16 dot instructions flush denormals.
        reuse_distance_bytes: Bytes a network reads and writes between two calls of the program,
            without the program's own data.  They determine which caches still hold its constants
            when it starts.  0 if it is called repeatedly with nothing in between.
        name: For messages; not part of the key.
        at: Sizes of dimensions, by name.  If there are any, programs of the task are those of a
            definition for all sizes, which is ``dag`` where the dimensions have these sizes.

    Raises:
        UsageError: No definition or target, no whole number of threads from 1, a negative reuse
            distance, or an unknown precision.
    """

    dag: ComputeDAG
    target: Target
    threads: int
    precision: Precision = "default"
    reuse_distance_bytes: int = 0
    name: str = ""
    at: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.dag, ComputeDAG):
            raise UsageError(
                f"{self.dag!r} is no ComputeDAG", hint="make one: ComputeDAG.of([...])"
            )
        if not isinstance(self.target, Target):
            raise UsageError(
                f"{self.target!r} is no Target", hint='name it so: Target.parse("host")'
            )
        if not isinstance(self.threads, Integral) or self.threads < 1:
            raise UsageError(f"threads must be a whole number of at least 1, got {self.threads!r}")
        if self.reuse_distance_bytes < 0:
            raise UsageError(f"there are no {self.reuse_distance_bytes} bytes between two calls")
        if self.precision not in get_args(Precision):
            raise UsageError(
                f"unknown precision {self.precision!r}", hint="use 'default', 'strict' or 'tf32'"
            )

    @cached_property
    def key(self) -> str:
        """Text that is equal for two tasks exactly if records of one are valid for the other."""
        definition, threads = structural_hash(self.dag), str(self.threads)
        between = str(self.reuse_distance_bytes)
        common = (definition, self.target.key, threads, self.precision, between)
        return "/".join((*common, *self._at))

    @cached_property
    def class_key(self) -> str:
        """Text that is equal for tasks of the same structure on the same machine.

        Their shapes and threads may differ, but similar schedules should give them similar
        throughput per core.
        """
        common = (class_hash(self.dag), self.target.key, self.precision)
        return "/".join((*common, *self._at))

    @property
    def _at(self) -> tuple[str, ...]:
        return tuple(f"{name}={size}" for name, size in self.at)

    @property
    def static(self) -> Self:
        """The task whose programs are for these sizes only."""
        return replace(self, at=())

    @cached_property
    def flops(self) -> float:
        """Number of arithmetic operations of the definition."""
        return flops(self.dag)

    @cached_property
    def bytes(self) -> int:
        """Minimum bytes of memory traffic: each argument read once, each output written once."""
        return sum(fixed(op.bytes) for op in (*self.dag.args, *self.dag.outputs))

    def __repr__(self) -> str:
        name = f" {self.name}" if self.name else ""
        return f"<Task{name}: {self.dag.signature}, {self._conditions}>"

    def _repr_html_(self) -> str:
        facts = {
            "runs on": self._conditions, "precision": self.precision, "sizes": ", ".join(self._at)
        }  # fmt: skip
        if not self.dag.dims:
            facts["work"] = f"{self.flops:,.0f} operations, {self.bytes:,} bytes at least"
        return card("Task", self.name, facts, {"Definition": text(self.dag)})

    @property
    def _conditions(self) -> str:
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        return f"{threads} on {self.target.name}"
