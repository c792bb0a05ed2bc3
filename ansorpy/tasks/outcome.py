"""What a tuning run found, and why it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from ansorpy.ir.task import Task
from ansorpy.profiler import Activity
from ansorpy.search.history import Best, TaskHistory
from ansorpy.tasks.task_trials import TaskTrials

__all__ = ["Ending", "TaskOutcome", "Tuning"]


class Ending(Enum):
    """Why a run stopped measuring."""

    TRIALS = "all trials of the budget were spent"
    TIME = "the time limit was reached"
    OBJECTIVE = "the objective has nothing more to gain"
    NOTHING_LEFT = (
        "every task has no new candidates, stopped improving, is near its roofline or never gave "
        "a correct program"
    )
    INTERRUPTED = "the user stopped it"


@dataclass(frozen=True)
class TaskOutcome:
    """The result of tuning for one task; ``best`` is None if it never got a trial.

    ``trials``: those it got, compared with the plan.
    """

    task: Task
    best: Best | None
    history: TaskHistory
    trials: TaskTrials


@dataclass(frozen=True)
class Tuning:
    """Result of a tuning run: outcomes in the order of the tasks.

    ``interrupted``: whether the user stopped the run.
    ``ended``: why measuring stopped.
    ``seconds``: time of each activity of the run; they add up to its duration.
    """

    outcomes: tuple[TaskOutcome, ...]
    interrupted: bool = False
    ended: Ending = Ending.NOTHING_LEFT
    seconds: Mapping[Activity, float] = field(default_factory=dict)
