"""What a run's model is taught of the trials of other tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansorpy.cost.protocol import Remembering
from ansorpy.ir.task import Task
from ansorpy.measure.database import Database

__all__ = ["MOST_RECALLED", "recall_others", "shares"]

MOST_RECALLED = 1000
"""Programs of other tasks that a run's model learns at most: it is trained on all it knows many
times, and one database may hold the trials of years."""


def recall_others(
    model: Remembering, database: Database, tasks: Sequence[Task], most: int = MOST_RECALLED
) -> None:
    """Teach *model* of other tasks than *tasks* on their machine, at most *most* programs.

    Tasks of their classes come first; each has an even share of the programs there is room for.
    """
    own, classes = {task.key for task in tasks}, {task.class_key for task in tasks}
    version, width = model.remembers
    for task in {(t.target.key, t.threads): t for t in tasks}.values():
        others = [t for t in database.samples.tasks_like(task, version) if t.key not in own]
        kin = {t.key: t.samples for t in others if t.class_key in classes}
        rest = {t.key: t.samples for t in others if t.key not in kin}
        chosen = shares(kin, most)
        chosen |= shares(rest, most - sum(chosen.values()))
        wanted = [key for key, number in chosen.items() if number]
        model.recall(database.samples.of(wanted, version, width, chosen))


def shares(counts: Mapping[str, int], most: int) -> dict[str, int]:
    """Parts of *counts*, *most* together at most: as even as they can be with none left over."""
    left, found = most, {}
    ordered = sorted(counts.items(), key=lambda item: item[1])
    for at, (key, count) in enumerate(ordered):
        found[key] = min(count, left // (len(ordered) - at))
        left -= found[key]
    return found
