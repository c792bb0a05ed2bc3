"""Analytic hardware models, one for each backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.limits import Limits
from ansorpy.cost.nest_view import LeafView
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.registry import Registry
from ansorpy.target import Target

__all__ = ["CAUSES", "HARDWARE", "HardwareModel", "hardware_of"]

CAUSES = 7
"""Most causes of time that any hardware model tells apart."""


class HardwareModel(Protocol):
    """Seconds of programs on a kind of machine, from their loops and the machine alone."""

    @property
    def default_may_win(self) -> bool:
        """False if the default schedule is slower than any other program that runs."""

    def seconds(self, task: Task, views: Sequence[LeafView]) -> Floats:
        """Predicted seconds of each candidate."""

    def explained(self, task: Task, views: Sequence[LeafView]) -> tuple[Floats, list[Floats]]:
        """The same, and what of each statement's time each of its terms would take alone.

        The latter are shares, ``[settings, terms]`` for each statement; there are none if the model
        has no terms of single statements.
        """

    def causes(self, task: Task, views: Sequence[LeafView]) -> Floats:
        """Seconds that each cause would take alone, ``[candidates, statements, causes]``.

        There are at most :data:`CAUSES` causes.
        """

    def least_seconds(self, task: Task, dag: ComputeDAG) -> float:
        """Least seconds that any schedule of *dag*, a definition of *task*, can take."""

    def limits(self, task: Task, dag: ComputeDAG, kernels: int) -> Limits:
        """What limits schedules of *dag*, a definition of *task*, with *kernels* GPU kernels."""

    def handover_seconds(self, task: Task) -> float:
        """Seconds that *task* takes longer between other calls than when it is timed alone."""


HARDWARE: Registry[HardwareModel] = Registry(
    "hardware model",
    {
        "llvm": "ansorpy.cost.analytic.cpu.model:CpuModel",
        "cuda": "ansorpy.cost.analytic.gpu.model:GpuModel",
        "c": "ansorpy.cost.analytic.cpu.model:CpuModel",
    },
)
"""The hardware model of each backend."""


def hardware_of(target: Target) -> HardwareModel:
    """The hardware model of *target*'s backend."""
    return HARDWARE.one(target.backend)
