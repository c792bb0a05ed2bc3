"""Train a run's cost model on recorded trials of other tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansorpy.cost.protocol import Remembering
from ansorpy.ir.task import Task
from ansorpy.measure.records.known_trials import KnownTrials

__all__ = ["MOST_PROGRAMS", "pretrain", "shares"]

MOST_PROGRAMS = 1000
"""Maximum number of programs of other tasks that a run's model learns from: it is retrained many
times, and a database may contain years of trials."""


def pretrain(
    model: Remembering, known: KnownTrials, tasks: Sequence[Task], most: int = MOST_PROGRAMS
) -> None:
    """Train *model* on at most *most* programs of tasks other than *tasks*, on the same machine.

    Tasks of the same classes come first; the available number is divided evenly among tasks.
    """
    own, classes = {task.key for task in tasks}, {task.class_key for task in tasks}
    version, width = model.remembers
    store, began = known.database.samples, known.began
    for task in {(t.target.key, t.threads): t for t in tasks}.values():
        others = [t for t in store.tasks_like(task, version, began) if t.key not in own]
        kin = {t.key: t.samples for t in others if t.class_key in classes}
        rest = {t.key: t.samples for t in others if t.key not in kin}
        chosen = shares(kin, most)
        chosen |= shares(rest, most - sum(chosen.values()))
        wanted = [key for key, number in chosen.items() if number]
        model.recall(store.of(wanted, version, width, chosen, began))


def shares(counts: Mapping[str, int], most: int) -> dict[str, int]:
    """Divide *most* among *counts* as evenly as possible, giving none more than its count."""
    left, found = most, {}
    ordered = sorted(counts.items(), key=lambda item: item[1])
    for at, (key, count) in enumerate(ordered):
        found[key] = min(count, left // (len(ordered) - at))
        left -= found[key]
    return found
