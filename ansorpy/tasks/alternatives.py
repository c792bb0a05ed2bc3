"""How much the calls of a region's alternatives count when trials are divided between tasks.

The time of an alternative is the sum of its tasks' times.  Alternatives other than the one that
would be taken (the leader) are tuned as long as they may still be taken instead; after that, their
tasks get no more trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.graph.alternatives import Alternative, Alternatives
from ansorpy.tasks.progress import TaskProgress

__all__ = ["SETTLED", "claimed_calls", "leader_calls", "timed"]

TRIED = 0.5
"""Weight of the calls of an alternative that is slower than the leader but may still win.

A gain in such an alternative matters only once it wins.
"""

SETTLED = 16
"""A task with fewer trials than this may end with a far better time than its best so far.

The first two programs of a matmul of BERT's attention took 5 ms, the best of 60 took 0.03 ms.
"""

UNIT = 8
"""After ``n`` times this many trials a task is assumed to become faster by at most one part in
``n + 1``, as in the gradient scheduler (OSDI'20 §6.2)."""


def timed(region: Alternatives[int], tasks: Sequence[TaskProgress]) -> Alternatives[int]:
    """*region* with the best known time of each alternative; tasks are named by their numbers."""
    return region.timed({number: task.best_s for number, task in enumerate(tasks)})


def leader_calls(region: Alternatives[int], tasks: Sequence[TaskProgress]) -> Floats:
    """Calls of each task by the fastest alternative, or by the first while none is complete."""
    leader = timed(region, tasks).fastest
    return _row(region.options[leader], len(tasks))


def claimed_calls(region: Alternatives[int], tasks: Sequence[TaskProgress]) -> Floats:
    """Calls of each task, weighted for the division of trials.

    The leader's calls count in full, those of alternatives that may still win in part.  Until all
    tasks of some alternative have a time, all alternatives that may get there count equally.
    """
    now = timed(region, tasks)
    possible_s = [
        np.inf if option.seconds is None else option.seconds
        for option in region.timed({n: _possible_s(task) for n, task in enumerate(tasks)}).options
    ]
    leader_s = now.options[now.fastest].seconds
    if leader_s is None:
        shares = np.isfinite(possible_s) / max(np.isfinite(possible_s).sum(), 1)
    else:
        wins = [_may_win(now, number, best_s) for number, best_s in enumerate(possible_s)]
        shares = np.where(wins, TRIED, 0.0)
        shares[now.fastest] = 1.0
    claimed: Floats = shares @ np.array([_row(option, len(tasks)) for option in region.options])
    return claimed


def _may_win(now: Alternatives[int], number: int, possible_s: float) -> bool:
    """Whether option *number* would be taken if it took *possible_s*."""
    options = [*now.options]
    options[number] = replace(options[number], seconds=possible_s)
    return Alternatives(tuple(options)).fastest == number


def _row(option: Alternative[int], tasks: int) -> Floats:
    """The calls of *option* as a vector with one entry for each of the *tasks* tasks."""
    row = np.zeros(tasks)
    for number, calls in option.calls.items():
        row[number] = calls
    return row


def _possible_s(task: TaskProgress) -> float:
    """Least seconds the task may still reach; infinite if abandoned without a program."""
    if not np.isfinite(task.best_s):
        return task.least_s if task.alive else float("inf")
    if not task.alive:
        return task.best_s
    if task.trials < SETTLED:
        return task.least_s
    return max(task.least_s, task.best_s * task.trials / (task.trials + UNIT))
