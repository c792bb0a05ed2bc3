"""The transfer source that adapts schedules of similar tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, log
from typing import ClassVar

from ansorpy.errors import ForeignFile
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import ComputeOp
from ansorpy.measure.records.known_trials import KnownTrials
from ansorpy.measure.records.rows import Record
from ansorpy.search.population import Candidate, Key, Rebuilding, in_turns, score
from ansorpy.search.strategy import Context

__all__ = ["Both", "ScheduleReuse", "distance"]


@dataclass(frozen=True)
class ScheduleReuse:
    """Begins with the fastest schedules of tasks that differ only in shape, adapted to this task.

    Definition, sketch and compute locations are kept; every number becomes the nearest one that the
    new shapes allow, inner tiles before outer ones.  Tasks with the most similar shapes come first.
    Paper: Transfer-Tuning (Gibson and Cano, PACT 2022).  Source: github gicLAB/transfer-tuning.
    Differs: the paper measures every schedule of the class and stops there; here the search
    continues from a few.  Every recorded task of the class is a donor, not those of one network.

    Args:
        candidates: Maximum number of candidates to measure first.
        tasks: How many similar tasks to use.
        records: How many of the fastest records to use from each.
        programs: Correct programs that a similar task must have.  With fewer, its best schedules
            are no better than the model's own choices, whose trials they would take (measured:
            ``benchmarks.warm``).
        neighbours: The model chooses among this many rows nearest to each schedule, as the best
            schedule for other shapes may be wasteful here.
    """

    candidates: int = 4
    tasks: int = 3
    records: int = 3
    programs: int = 12
    neighbours: int = 64
    own: ClassVar[bool] = False
    others: ClassVar[bool] = True

    def first(self, context: Context, trials: KnownTrials) -> Sequence[Candidate]:
        found: dict[Key, Candidate] = {}
        nearest = self._nearest(context.task, trials)
        for candidate in in_turns(*(self._refitted(context, trials, key) for key in nearest)):
            found.setdefault(candidate.key, candidate)
            if len(found) == self.candidates:
                break
        return list(found.values())

    def _nearest(self, task: Task, trials: KnownTrials) -> list[str]:
        """Keys of similar tasks, nearest shapes first."""
        ranked = sorted(
            (distance(task.dag, trials.definition(row.definition)), row.key)
            for row in trials.similar(task)
            if trials.correct(row.key) >= self.programs
        )
        return [key for _, key in ranked[: self.tasks]]

    def _refitted(self, context: Context, trials: KnownTrials, key: str) -> Iterator[Candidate]:
        """Programs of the task adapted from the fastest ones of the task with key *key*."""
        names = trials.variants(key)
        for record in trials.fastest(key, self.records):
            for name in _definitions(context, names.get(record.definition, "")):
                candidate = _fitted(context, name, record, self.neighbours)
                if candidate is not None:
                    yield candidate


class Both(ScheduleReuse):
    """Resumes from the task's own trials, and begins with schedules of similar tasks."""

    own: ClassVar[bool] = True


def _definitions(context: Context, name: str) -> list[str]:
    """The task's definition called *name*, or those that differ only in parameters."""
    known = [definition.name for definition in context.source.definitions]
    family = name.partition("(")[0]
    return [name] if name in known else [k for k in known if k.partition("(")[0] == family]


def _fitted(context: Context, definition: str, record: Record, n: int) -> Candidate | None:
    """The row with the best score among the *n* valid rows nearest to *record*'s schedule.

    None when no placed sketch is similar to the schedule's, or when the schedule cannot be read.
    """
    if not isinstance(context.source, Rebuilding):
        return None
    try:
        steps = record.schedule()
    except ForeignFile:  # written by another version
        return None
    for sketch, table in context.source.refit(definition, steps, n, context.rng):
        near = score(context.task, context.model, sketch, table)
        return near.rows(near.scores.argsort()[-1:]).candidates()[0]
    return None


def distance(one: ComputeDAG, other: ComputeDAG) -> float:
    """Distance between the shapes of two definitions of one class: each doubled extent adds 1."""
    pairs = list(zip(_extents(one), _extents(other), strict=False))
    if len(pairs) != len(_extents(other)) or len(pairs) != len(_extents(one)):
        return inf
    return sum(abs(log(a / b, 2)) for a, b in pairs)


def _extents(dag: ComputeDAG) -> list[int]:
    """Extents of all operators, including reduction axes, in order."""
    found: list[int] = []
    for op in dag.ops:
        found += op.shape
        found += [axis.extent for axis in op.reduce_axes] if isinstance(op, ComputeOp) else []
    return found
