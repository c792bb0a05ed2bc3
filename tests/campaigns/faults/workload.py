"""What the tuners of the campaign tune."""

from __future__ import annotations

from dataclasses import replace

from ansorpy.ir.task import Task
from ansorpy.target import Target
from tests.search.tasks import dense_relu, matmul

__all__ = ["small_tasks"]

_N = 24


def small_tasks() -> list[Task]:
    """Two operators for this machine."""
    made = matmul(_N, _N, _N), dense_relu(8, _N, _N)
    return [replace(task, target=Target.host(), threads=2) for task in made]
