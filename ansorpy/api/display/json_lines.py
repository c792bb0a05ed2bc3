"""Events of a search as JSON: one object a line."""

from __future__ import annotations

import json
from typing import Any, TextIO

from ansorpy.api.display.base import Display
from ansorpy.api.events import PeerTimed, Planned, Tuned
from ansorpy.quantities import ms_of
from ansorpy.search.events import Event, Progress

__all__ = ["JsonLines", "event_dict"]


class JsonLines(Display):
    """Prints each event to *file*."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def __call__(self, event: Event) -> None:
        """Print *event*."""
        print(json.dumps(event_dict(event)), file=self._file, flush=True)


def event_dict(event: Event) -> dict[str, Any]:
    """*event* as JSON-serializable values; ``event`` names its kind (docs/guides/terminal.md)."""
    if isinstance(event, Progress):
        return _progress(event)
    if isinstance(event, Planned):
        return _plan(event)
    if isinstance(event, Tuned):
        return _tuned(event)
    if isinstance(event, PeerTimed):
        return {"event": "peer", "name": event.name, "ms": event.seconds * 1e3}
    raise TypeError(f"unknown event {event!r}")


def _progress(event: Progress) -> dict[str, Any]:
    trial = event.trial
    return {
        "event": "progress",
        "phase": event.phase.value,
        "task": event.task or None,
        "key": event.key or None,
        "trials": event.trials,
        "total_trials": event.total_trials,
        "trial_limit": event.trial_limit,
        "best_ms": ms_of(event.best_s),
        "total_ms": ms_of(event.total_s),
        "untuned_ms": ms_of(event.untuned_s),
        "left_s": event.left_s,
        "trial": None if trial is None else trial.result.kind.value,
        "failures": {kind.value: count for kind, count in (event.failures or {}).items()},
    }


def _plan(event: Planned) -> dict[str, Any]:
    plan = event.plan
    tasks = [
        {
            "task": one.task.name, "key": one.task.key, "calls": one.weight,
            "flops": one.task.flops, "least_ms": ms_of(one.least_s), "share": one.share,
            "trials": one.trials, "before": one.before.trials, "best_ms": ms_of(one.before.best_s),
        }
        for one in (plan.tasks if plan else ())
    ]  # fmt: skip
    return {
        "event": "plan",
        "name": event.name,
        "target": event.request.target.name,
        "threads": event.request.threads,
        "records": str(event.request.db),
        "trials": plan.trials if plan else 0,
        "seconds": plan.seconds if plan else 0.0,
        "tasks": tasks,
    }


def _tuned(event: Tuned) -> dict[str, Any]:
    tasks = [
        {
            "task": one.task.name, "key": one.task.key,
            "best_ms": None if one.best is None else ms_of(one.best.seconds),
            "planned": one.trials.planned, "trials": one.trials.got,
            "why": one.trials.why or None,
        }
        for one in event.tuning.outcomes
    ]  # fmt: skip
    return {
        "event": "tuned",
        "ended": event.tuning.ended.value,
        "interrupted": event.tuning.interrupted,
        "tasks": tasks,
        "seconds": {activity.value: s for activity, s in event.tuning.seconds.items()},
    }
