"""The analytic model of GPUs, as a hardware model that the search can use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.gpu.bound import gpu_least_seconds, gpu_limits
from ansorpy.cost.analytic.gpu.kernel import gpu_causes, gpu_seconds
from ansorpy.cost.analytic.limits import Limits
from ansorpy.cost.nest_view import LeafView
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task

__all__ = ["GpuModel"]


@dataclass(frozen=True)
class GpuModel:
    """Sums the predicted times of kernels, which run in sequence (:mod:`.kernel`).

    The default schedule is a single thread, so it is never the fastest.
    """

    default_may_win: bool = False

    def seconds(self, task: Task, views: Sequence[LeafView]) -> Floats:
        """Predicted seconds of each candidate."""
        return gpu_seconds(task.target, views)

    def explained(self, task: Task, views: Sequence[LeafView]) -> tuple[Floats, list[Floats]]:
        """The same; the terms are those of kernels, so there are none of statements."""
        return self.seconds(task, views), []

    def causes(self, task: Task, views: Sequence[LeafView]) -> Floats:
        """Seconds of each kernel, in the row of its first statement; the last is its launch."""
        return gpu_causes(task.target, views)

    def least_seconds(self, task: Task, dag: ComputeDAG) -> float:
        """Least seconds that any schedule of *dag* can take."""
        return gpu_least_seconds(task.target, dag)

    def limits(self, task: Task, dag: ComputeDAG, kernels: int) -> Limits:
        """What limits schedules of *dag* with this many *kernels*, at the rates of the chip."""
        return gpu_limits(task, dag, kernels)

    def handover_seconds(self, task: Task) -> float:
        """0: no such difference was measured on GPUs."""
        return 0.0
