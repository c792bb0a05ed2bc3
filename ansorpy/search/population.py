"""Populations of candidates: a placed sketch, a table of decisions, and a score for each row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ansorpy.cost.nest_view import Floats
from ansorpy.cost.programs import Programs
from ansorpy.cost.protocol import CostModel, predictions
from ansorpy.ir.task import Task
from ansorpy.measure.records.rows import Unmade
from ansorpy.profiler import Activity, profiled
from ansorpy.rules.algorithms.base import Definition
from ansorpy.rules.placed_sketch import Pair, PlacedSketch, Recovered
from ansorpy.rules.reuse.recover import Steps
from ansorpy.schedule.space import Table
from ansorpy.schedule.state import State

__all__ = [
    "Candidate",
    "Pool",
    "Rebuilding",
    "Scored",
    "SketchSource",
    "merged",
    "sample_valid",
    "score",
    "score_all",
    "top",
]

_SAMPLING_TRIES = 4


class SketchSource(Protocol):
    """The source of a task's placed sketches, and its (definition, sketch) pairs."""

    @property
    def definitions(self) -> Sequence[Definition]: ...

    @property
    def pairs(self) -> Sequence[Pair]: ...

    def draw(
        self, n: int, rng: np.random.Generator, shares: Mapping[Pair, float] | None = None
    ) -> Sequence[PlacedSketch]:
        """At most *n* distinct random placed sketches.

        With *shares*, they come only from these pairs, in proportion to the shares.
        """

    def every(self) -> Iterator[PlacedSketch]:
        """All placed sketches, each once, in a fixed order."""


@runtime_checkable
class Rebuilding(Protocol):
    """A source of placed sketches that can recover recorded schedules."""

    def recover(self, definition: str, schedules: Sequence[Steps]) -> Sequence[Recovered]:
        """Recorded *schedules* of a definition as rows of their sketches, as far as possible."""

    def refit(
        self, definition: str, schedule: Steps, n: int, rng: np.random.Generator
    ) -> Iterator[tuple[PlacedSketch, Table]]:
        """Placed sketches similar to that of *schedule*, which was made for other shapes.

        Each comes with at most *n* valid rows, those nearest to the schedule first.  They are made
        lazily, the most similar one first.
        """


@dataclass(frozen=True)
class Candidate:
    """One row picked for measuring."""

    sketch: PlacedSketch
    row: Table
    score: float

    @property
    def key(self) -> tuple[str, bytes]:
        """Identity: placed sketch and row."""
        return self.sketch.key, self.row.tobytes()

    def state(self) -> State:
        """The program; raises :class:`~ansorpy.errors.AnsorpyError` if there is none."""
        return self.sketch.resolve(self.row)

    def unmade(self) -> Unmade:
        """The program as a definition and steps that have not been applied."""
        space = self.sketch.space
        return Unmade(space.state.definition, tuple(space.steps(self.row)))


@dataclass(frozen=True)
class Scored:
    """Rows of one placed sketch with the model's scores."""

    sketch: PlacedSketch
    table: Table
    scores: Floats

    def __len__(self) -> int:
        return len(self.table)

    def rows(self, chosen: npt.NDArray[np.intp]) -> Scored:
        """The rows with these numbers."""
        return Scored(self.sketch, self.table[chosen], self.scores[chosen])

    def candidates(self) -> list[Candidate]:
        """Every row as a candidate."""
        return [
            Candidate(self.sketch, row, float(s))
            for row, s in zip(self.table, self.scores, strict=True)
        ]


@dataclass(frozen=True)
class Pool:
    """A strategy's candidates for measuring.

    ``best`` are promising candidates in the order the strategy would try them; ``random`` are for
    exploration.  ``more`` is True when there may be others, though too few were found this time.
    """

    best: tuple[Candidate, ...]
    random: tuple[Candidate, ...] = ()
    more: bool = False


def sample_valid(sketch: PlacedSketch, n: int, rng: np.random.Generator) -> Table:
    """At most *n* random rows that satisfy the constraints; fewer where most draws violate them."""
    found = np.zeros((0, len(sketch.columns)), dtype=np.int64)
    for _ in range(_SAMPLING_TRIES):
        table = sketch.sample(max(n, 16), rng)
        found = np.concatenate([found, table[sketch.valid(table)]])
        if len(found) >= n:
            break
    return found[:n]


def score(task: Task, model: CostModel, sketch: PlacedSketch, table: Table) -> Scored:
    """Score *table* with the model."""
    [scored] = score_all(task, model, [(sketch, table)])
    return scored


def score_all(
    task: Task, model: CostModel, tables: Sequence[tuple[PlacedSketch, Table]]
) -> list[Scored]:
    """Score tables of several placed sketches with a single query of the model."""
    programs = [Programs(sketch.space, table) for sketch, table in tables if len(table)]
    with profiled(Activity.MODEL):
        scores = iter(predictions(model, task, programs))
    return [Scored(s, t, next(scores) if len(t) else np.zeros(0)) for s, t in tables]


def top(
    groups: Iterable[Scored], n: int, taken: Iterable[tuple[str, bytes]] = ()
) -> list[Candidate]:
    """The *n* best distinct candidates of *groups* that are not *taken*, best first."""
    taken = set(taken)
    shortlist: dict[tuple[str, bytes], Candidate] = {}
    for group in groups:
        kept = 0
        for at in np.argsort(-group.scores, kind="stable"):
            candidate = Candidate(group.sketch, group.table[at], float(group.scores[at]))
            if candidate.key in taken or candidate.key in shortlist:
                continue
            shortlist[candidate.key] = candidate
            kept += 1
            if kept == n:
                break
    return sorted(shortlist.values(), key=lambda c: -c.score)[:n]


def merged(groups: Sequence[Scored], sketch: PlacedSketch, n: int) -> Scored:
    """The *n* best distinct rows of *sketch*, best first."""
    same = [g for g in groups if g.sketch.key == sketch.key]
    table = np.concatenate([g.table for g in same])
    scores = np.concatenate([g.scores for g in same])
    _, first = np.unique(table, axis=0, return_index=True)
    best = first[np.argsort(-scores[first], kind="stable")][:n]
    return Scored(sketch, table[best], scores[best])
