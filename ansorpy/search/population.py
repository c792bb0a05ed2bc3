"""Populations of candidates: a placed sketch, a table of decisions, and a score for each row."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from ansorpy.arrays import Floats
from ansorpy.cost.programs import Programs
from ansorpy.cost.protocol import CostModel, Uncertain, predictions
from ansorpy.ir.task import Task
from ansorpy.measure.records.rows import Unmade
from ansorpy.profiler import Activity, profiled
from ansorpy.rules.algorithms.base import Definition
from ansorpy.rules.placed_sketch import Pair, PartialSketch, PlacedSketch, Recovered
from ansorpy.schedule.row_numbers import codes_of
from ansorpy.schedule.space import Domains, Space, Table
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.base import Step

__all__ = [
    "Candidate",
    "Key",
    "Pool",
    "Rebuilding",
    "Scored",
    "SketchSource",
    "best_groups",
    "by_sketch",
    "different",
    "fittest",
    "in_turns",
    "merged",
    "roulette",
    "sample_valid",
    "score",
    "score_all",
    "scored_again",
    "scored_together",
    "top",
    "with_deviations",
]

T = TypeVar("T")

Key: TypeAlias = tuple[str, bytes]
"""What identifies a candidate: its placed sketch and its row."""

_SAMPLING_TRIES = 4


class SketchSource(Protocol):
    """The source of a task's placed sketches, and its (definition, sketch) pairs."""

    @property
    def definitions(self) -> Sequence[Definition]: ...

    @property
    def pairs(self) -> Sequence[Pair]: ...

    def begin(self, number: int) -> PartialSketch:
        """Sketch *number*, of which nothing is placed."""

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

    def recover(self, definition: str, schedules: Sequence[Sequence[Step]]) -> Sequence[Recovered]:
        """Recorded *schedules* of a definition as rows of their sketches, as far as possible."""

    def refit(
        self, definition: str, schedule: Sequence[Step], n: int, rng: np.random.Generator
    ) -> Iterator[tuple[PlacedSketch, Table]]:
        """Placed sketches similar to that of *schedule*, which was made for other shapes.

        Each comes with at most *n* valid rows, those nearest to the schedule first.  They are made
        lazily, the most similar one first.
        """


@dataclass(frozen=True)
class Candidate:
    """One row picked for measuring; all have the same score if no model was asked.

    ``deviation`` is the standard deviation of its score, if the model knows it.
    """

    sketch: PlacedSketch
    row: Table
    score: float = 1.0
    deviation: float | None = None

    @property
    def key(self) -> Key:
        """Its identity."""
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
    The search adds what selectors may want to know: ``fastest`` is the fastest program measured so
    far, scored by today's model (None before there is one, or if the model knows no deviations),
    and ``measured`` has the keys of all measured programs.
    """

    best: tuple[Candidate, ...]
    random: tuple[Candidate, ...] = ()
    more: bool = False
    fastest: Candidate | None = None
    measured: Set[Key] = frozenset()

    def candidates(self) -> list[Candidate]:
        """All of them, each once, those in ``best`` first."""
        return different([*self.best, *self.random])


def different(candidates: Iterable[Candidate]) -> list[Candidate]:
    """*candidates* without duplicates, in order."""
    return list({c.key: c for c in candidates}.values())


def in_turns(*sources: Iterable[T]) -> Iterator[T]:
    """One item of each of *sources* in turn, lazily, until none has more."""
    waiting = deque(map(iter, sources))
    while waiting:
        source = waiting.popleft()
        for item in islice(source, 1):
            yield item
            waiting.append(source)


def sample_valid(
    sketch: PlacedSketch, n: int, rng: np.random.Generator, within: Domains | None = None
) -> Table:
    """At most *n* random rows that satisfy the constraints; fewer where most draws violate them.

    With *within*, each decision is one of its rows there.  The annotation rules' draws are kept
    where they are; where they leave no valid row, rows are completed decision by decision.
    """
    found = np.zeros((0, len(sketch.columns)), dtype=np.int64)
    for _ in range(_SAMPLING_TRIES):
        table = sketch.sample(max(n, 16), rng)
        if within is not None:
            table = _moved_within(sketch.space, table, within, rng)
        found = np.concatenate([found, table[sketch.valid(table)]])
        if len(found) >= n:
            break
    if within is not None and not len(found) and all(map(len, within)):
        choices = [np.broadcast_to(rows, (n, *rows.shape)) for rows in within]
        found = sketch.space.complete(choices, rng)
    return found[:n]


def _moved_within(space: Space, table: Table, within: Domains, rng: np.random.Generator) -> Table:
    """*table* with every decision that is none of its rows in *within* drawn from these."""
    table = table.copy()
    for rows, at in zip(within, space.slices.values(), strict=True):
        if len(rows):
            outside = ~(table[:, None, at] == rows[None]).all(axis=2).any(axis=1)
            table[outside, at] = rows[rng.integers(len(rows), size=int(outside.sum()))]
    return table


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


def scored_together(
    task: Task, model: CostModel, tables: Sequence[tuple[PlacedSketch, Table]]
) -> list[Scored]:
    """Score *tables* as :func:`score_all` does, those of the same placed sketch as one table."""
    same = _numbers_by_sketch(sketch for sketch, _ in tables)
    joined = [(tables[ns[0]][0], np.concatenate([tables[n][1] for n in ns])) for ns in same]
    scores: dict[int, Floats] = {}
    for numbers, scored in zip(same, score_all(task, model, joined), strict=True):
        ends = np.cumsum([len(tables[n][1]) for n in numbers])
        scores |= zip(numbers, np.split(scored.scores, ends[:-1]), strict=True)
    return [Scored(sketch, table, scores[n]) for n, (sketch, table) in enumerate(tables)]


def top(groups: Iterable[Scored], n: int, taken: Iterable[Key] = ()) -> list[Candidate]:
    """The *n* best distinct candidates of *groups* that are not *taken*, best first."""
    taken = set(taken)
    shortlist: dict[Key, Candidate] = {}
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


def best_groups(groups: Iterable[Scored], n: int) -> list[Scored]:
    """The *n* groups with the best rows, best first."""
    return sorted((g for g in groups if len(g)), key=lambda g: -float(g.scores.max()))[:n]


def fittest(groups: Sequence[Scored], n: int) -> list[Scored]:
    """The *n* rows of *groups* with the best scores, more if several have the same score."""
    scores = np.concatenate([np.zeros(0), *(group.scores for group in groups)])
    if len(scores) <= n:
        return list(groups)
    least = np.partition(scores, -n)[-n]
    chosen = (group.rows(np.flatnonzero(group.scores >= least)) for group in groups)
    return [group for group in chosen if len(group)]


def by_sketch(candidates: Sequence[Candidate]) -> list[tuple[PlacedSketch, Table, list[int]]]:
    """The placed sketches of *candidates*, each with their rows and their numbers."""
    return [
        (candidates[numbers[0]].sketch, np.array([candidates[n].row for n in numbers]), numbers)
        for numbers in _numbers_by_sketch(c.sketch for c in candidates)
    ]


def _numbers_by_sketch(sketches: Iterable[PlacedSketch]) -> list[list[int]]:
    """The numbers of *sketches*, those of the same one together."""
    same: dict[str, list[int]] = {}
    for number, sketch in enumerate(sketches):
        same.setdefault(sketch.key, []).append(number)
    return list(same.values())


def merged(groups: Sequence[Scored], sketch: PlacedSketch, n: int) -> Scored:
    """The *n* best distinct rows of *sketch*, best first."""
    same = [g for g in groups if g.sketch.key == sketch.key]
    table = np.concatenate([g.table for g in same])
    scores = np.concatenate([g.scores for g in same])
    codes = codes_of(table)
    _, first = np.unique(table if codes is None else codes, axis=0, return_index=True)
    best = first[np.argsort(-scores[first], kind="stable")][:n]
    return Scored(sketch, table[best], scores[best])


def roulette(weight: Floats, n: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """*n* row numbers, drawn in proportion to *weight*, uniformly when all weights are 0."""
    cumulated = np.cumsum(weight)
    if cumulated[-1] <= 0:
        return rng.integers(len(weight), size=n).astype(np.intp)
    drawn = np.searchsorted(cumulated, rng.random(n) * cumulated[-1], side="right")
    rows: npt.NDArray[np.intp] = np.minimum(drawn, len(weight) - 1)
    return rows


def scored_again(candidates: Sequence[Candidate], task: Task, model: CostModel) -> list[Candidate]:
    """*candidates* with today's scores."""
    groups = scored_together(task, model, [(c.sketch, c.row[None]) for c in candidates])
    return [candidate for group in groups for candidate in group.candidates()]


def with_deviations(pool: Pool, task: Task, model: CostModel, fastest: Candidate | None) -> Pool:
    """*pool* with the deviation of every score and the *fastest* program measured so far.

    It is *pool* itself if *model* does not know its deviations.
    """
    if not isinstance(model, Uncertain):
        return pool
    rescored = [] if fastest is None else scored_again([fastest], task, model)
    everyone = [*pool.best, *pool.random, *rescored]
    known: dict[Key, float] = {}
    for sketch, table, numbers in by_sketch(everyone):
        found = model.deviations(task, Programs(sketch.space, table))
        if found is None:
            return pool
        known |= zip((everyone[n].key for n in numbers), found.tolist(), strict=True)

    def judged(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
        return tuple(replace(c, deviation=known[c.key]) for c in candidates)

    return replace(
        pool,
        best=judged(pool.best),
        random=judged(pool.random),
        fastest=next(iter(judged(rescored)), None),
    )
