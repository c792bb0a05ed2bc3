"""The tasks that a definition is tuned as: itself, or itself at the sizes that stand for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from ansorpy.cost.bound import least_seconds
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.sizes import Sizes, fixed
from ansorpy.ir.symbols import Dim
from ansorpy.ir.task import Task

__all__ = ["MOST_SIZES", "TaskGroup", "sizes_between", "sizes_for"]

MOST_SIZES = 4
"""Sizes at which a definition is tuned, hence schedules that its kernel has."""

_CALL_S = 1e-7
"""The least seconds of any call."""


@dataclass(frozen=True, eq=False)
class TaskGroup:
    """The tasks of one definition.

    Args:
        dag: The definition.
        tasks: Its tasks by their sizes, smallest first; a definition without dimensions has one.
        between: The definition at sizes between those of *tasks*, at which schedules are timed too.
    """

    dag: ComputeDAG
    tasks: Mapping[Task, Sizes]
    between: Mapping[Task, Sizes]

    @staticmethod
    def of(dag: ComputeDAG, task_of: Callable[[ComputeDAG, str], Task]) -> TaskGroup:
        """The tasks of *dag*; *task_of* makes one of a definition and a suffix of its name."""
        if not dag.dims:
            return TaskGroup(dag, {task_of(dag, ""): {}}, {})
        every = sizes_for(dag.dims)
        tasks, between = (
            {task_of(dag_at(dag, sizes), _suffix(sizes)): sizes for sizes in some}
            for some in (every, sizes_between(dag.dims, every))
        )
        return TaskGroup(dag, tasks, between)

    @property
    def every(self) -> dict[Task, Sizes]:
        """All tasks at which schedules are timed, by their sizes."""
        return {**self.tasks, **self.between}

    @property
    def weights(self) -> dict[Task, float]:
        """What a call counts at each size, 1 in all.

        A call counts by how much longer than the least time it takes, so that small sizes get as
        many trials as large ones.
        """
        if len(self.tasks) == 1:
            return dict.fromkeys(self.tasks, 1.0)
        least = {task: max(least_seconds(task, task.dag), _CALL_S) for task in self.tasks}
        most = max(least.values())
        return {task: most / seconds / len(least) for task, seconds in least.items()}


def _suffix(sizes: Sizes) -> str:
    return "[" + ", ".join(f"{dim.name}={size}" for dim, size in sizes.items()) + "]"


def sizes_for(dims: Sequence[Dim]) -> list[Sizes]:
    """The sizes that stand for all: in geometric steps, the greatest among them.

    >>> n = Dim("n", 1, 512)
    >>> [sizes[n] for sizes in sizes_for([n])]
    [8, 32, 128, 512]
    """
    least_share = max((max(dim.low, 1) / max(dim.high, 1) for dim in dims), default=1.0)
    step = max(least_share, 1 / 4 ** (MOST_SIZES)) ** (1 / MOST_SIZES)
    found: list[Sizes] = []
    for power in range(MOST_SIZES - 1, -1, -1):
        sizes = {dim: _near(dim, dim.high * step**power) for dim in dims}
        if sizes not in found:
            found.append(sizes)
    return found


def _near(dim: Dim, size: float) -> int:
    """The size of *dim* that is nearest to *size*, but not 0 if another one is possible."""
    nearest = round(size / dim.step) * dim.step
    return min(max(nearest, dim.low, dim.step), dim.high)


def sizes_between(dims: Sequence[Dim], tuned: Sequence[Sizes]) -> list[Sizes]:
    """A size below each of *tuned* and above the one before it, odd if possible.

    Tiles divide sizes that a search was run for; they rarely divide another one.
    """
    found: list[Sizes] = []
    before = {dim: max(dim.low, 1) for dim in dims}
    for sizes in tuned:
        found.append({d: _odd(d, sqrt(before[d] * fixed(sizes[d]))) for d in dims})
        before = {d: fixed(sizes[d]) for d in dims}
    return found


def _odd(dim: Dim, size: float) -> int:
    nearest = _near(dim, size)
    return min(nearest | 1, dim.high) if dim.step == 1 else nearest
