"""What a task is besides its definition, as files and messages hold it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Precision, Task
from ansorpy.target import Target

__all__ = ["TaskConditions", "conditions_of"]


class TaskConditions(BaseModel):
    """The fields of a :class:`.Task` besides its definition, validated when they are read back."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: Target
    threads: int = Field(ge=1)
    precision: Precision
    reuse_distance_bytes: int = Field(ge=0)
    name: str
    at: tuple[tuple[str, int], ...] = ()

    def task_of(self, dag: ComputeDAG) -> Task:
        """The task that computes *dag* under these conditions."""
        return Task(dag, **{name: getattr(self, name) for name in TaskConditions.model_fields})


def conditions_of(task: Task) -> dict[str, Any]:
    """The values of the fields that :class:`TaskConditions` has of *task*."""
    return {field.name: getattr(task, field.name) for field in fields(task) if field.name != "dag"}
