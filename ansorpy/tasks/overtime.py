"""Use of the time left once all tasks stopped improving: tasks that may still gain get it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ansorpy.tasks.progress import TaskProgress

__all__ = ["NEAR", "WORTH", "revived"]

NEAR = 1.1
"""A task within this factor of its roofline has nothing left to gain.

The measured rates from which the roofline is computed are about this accurate.
"""
WORTH = 0.01
"""Fraction of the objective that a task must still be able to save; less would not be noticed."""


def revived(tasks: Sequence[TaskProgress]) -> list[TaskProgress]:
    """*tasks*, where resting ones that are far from their roofline are alive again."""
    total = sum(task.objective_s for task in tasks)
    return [
        replace(task, alive=True) if task.resting and _may_gain(task, total) else task
        for task in tasks
    ]


def _may_gain(task: TaskProgress, total: float) -> bool:
    is_far = task.best_s > NEAR * task.least_s
    return is_far and task.gradient * (task.best_s - task.least_s) >= WORTH * total > 0
