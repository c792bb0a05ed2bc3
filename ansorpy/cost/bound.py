"""A lower bound for any schedule of a task, from its arithmetic and the data it must move."""

from __future__ import annotations

from collections.abc import Iterable

from ansorpy.cost.analytic.hardware import hardware_of
from ansorpy.cost.analytic.limits import Limits
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.rules.algorithms.base import Definition

__all__ = ["handover_seconds", "least_seconds", "limits_of", "roofline_seconds"]


def roofline_seconds(task: Task, definitions: Iterable[Definition]) -> float:
    """Least seconds that any program of *task* can take: the lowest bound of its *definitions*."""
    return min(least_seconds(task, definition.dag) for definition in definitions)


def handover_seconds(task: Task) -> float:
    """Seconds that *task* takes longer between a network's other calls than when timed alone."""
    return hardware_of(task.target).handover_seconds(task)


def least_seconds(task: Task, dag: ComputeDAG) -> float:
    """Least seconds that any schedule of *dag*, a definition of *task*, can take.

    It omits work that a schedule might avoid: terms that a condition skips, transforms, and values
    passed between stages.
    """
    return hardware_of(task.target).least_seconds(task, dag)


def limits_of(task: Task, dag: ComputeDAG, kernels: int) -> Limits:
    """What limits schedules of *dag*, a definition of *task*; on a GPU, with *kernels* kernels."""
    return hardware_of(task.target).limits(task, dag, kernels)
