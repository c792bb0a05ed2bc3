"""Choose how to partition each region of a network: the alternative with the least total time.

Measured times decide, with what calls take longer between others; if no alternative is measured
completely, the analytic model decides.
"""

from __future__ import annotations

from collections.abc import Callable

from ansorpy.api.project import Project
from ansorpy.api.tuner import Tuner
from ansorpy.cost.bound import handover_seconds
from ansorpy.graph.alternatives import Alternatives
from ansorpy.ir.task import Task

__all__ = ["decide", "fastest", "timed_regions"]


def timed_regions(
    project: Project, best_s: Callable[[Task], float | None]
) -> list[Alternatives[str]]:
    """The regions of *project*, with their alternatives timed by the tasks' times *best_s*."""
    tasks = project.all_tasks if project.regions else ()
    known = {task.key: (best_s(task), task) for task in tasks}
    in_network = {
        key: None if seconds is None else seconds + handover_seconds(task)
        for key, (seconds, task) in known.items()
    }
    return [region.timed(in_network) for region in project.regions]


def fastest(project: Project, best_s: Callable[[Task], float | None]) -> Project:
    """*project* with each region partitioned in the fastest way known by *best_s*."""
    return project.decided([region.fastest for region in timed_regions(project, best_s)])


def decide(tuner: Tuner, project: Project) -> Project:
    """*project* with each region partitioned in its fastest way, as measured or else predicted."""
    regions = timed_regions(project, tuner.recorded_s)
    unknown = {key for region in regions if not region.is_timed for key in region.most_calls}
    tasks = [task for task in project.all_tasks if task.key in unknown]
    predicted = tuner.predicted_s(tasks) if tasks else {}
    return project.decided(
        [(region if region.is_timed else region.timed(predicted)).fastest for region in regions]
    )
