"""Choosing how to cut each region of a network: the way whose kernels take least in total.

Measured times decide; where no way is measured in full, the closed-form model decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf

import numpy as np

from ansorpy.api.project import OpenRegion, Project
from ansorpy.api.tuner import Tuner
from ansorpy.ir.task import Task
from ansorpy.report.ways import Decision, WayTime

__all__ = ["DOUBT", "decide", "decisions", "fastest"]

DOUBT = 0.95
"""Another way replaces the first only if predicted to take less than this part of its time.

Measured (docs/networks.md): for six attentions the model always identified the faster way; its
error in the ratio of their times was at most 5 %, once 18 %.
"""


def decisions(project: Project, best_s: Callable[[Task], float | None]) -> list[Decision]:
    """Decide each region by the tasks' times *best_s*: the fastest of the ways known in full.

    Where none is known in full, the first is taken.
    """
    known = {task.key: best_s(task) for task in project.all_tasks} if project.regions else {}
    found = []
    for region in project.regions:
        ways = tuple(
            WayTime(name, sum(calls.values()), _total(calls, known))
            for name, calls in region.ways.items()
        )
        seconds = [inf if way.seconds is None else way.seconds for way in ways]
        found.append(Decision(region.name, ways, int(np.argmin(seconds))))
    return found


def fastest(project: Project, best_s: Callable[[Task], float | None]) -> Project:
    """*project* with its regions cut as :func:`decisions` says."""
    return project.decided([decision.taken for decision in decisions(project, best_s)])


def decide(tuner: Tuner, project: Project) -> Project:
    """*project* with all its regions cut in their fastest ways."""
    found = list(zip(project.regions, decisions(project, tuner.recorded_s), strict=True))
    unknown = [region for region, decision in found if not decision.is_measured]
    predicted = iter(_predicted(tuner, project, unknown))
    return project.decided([d.taken if d.is_measured else next(predicted) for _, d in found])


def _predicted(
    tuner: Tuner, project: Project, regions: Sequence[OpenRegion]
) -> list[int]:  # fmt: skip
    """The ways to take for *regions* according to the closed-form model."""
    wanted = {key for region in regions for calls in region.ways.values() for key in calls}
    tasks = [task for task in project.all_tasks if task.key in wanted]
    seconds = tuner.predicted_s(tasks) if tasks else {}
    taken = []
    for region in regions:
        totals = [_total(calls, seconds) or 0.0 for calls in region.ways.values()]
        best = int(np.argmin(totals))
        taken.append(best if totals[best] < DOUBT * totals[0] else 0)
    return taken


def _total(calls: Mapping[str, int], seconds: Mapping[str, float | None]) -> float | None:
    """Seconds of all *calls*; None when the time of one is unknown."""
    total = 0.0
    for key, count in calls.items():
        each = seconds[key]
        if each is None:
            return None
        total += count * each
    return total
