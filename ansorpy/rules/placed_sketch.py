"""Placed sketches: compute locations are drawn, sizes are open.

Each round of the search draws a few of them and evolves one population table for each.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ansorpy.ir.task import Task
from ansorpy.rules.algorithms.base import definitions
from ansorpy.rules.base import PlacementRule, Subject
from ansorpy.rules.derive import generate_sketches
from ansorpy.rules.mutation.compute_location import carry_over
from ansorpy.rules.presets import Preset, preset_for
from ansorpy.rules.reuse.recover import Skeleton, placed_like, rows_of, skeleton_of
from ansorpy.rules.reuse.refit import nearest_rows, numbers_of, refitted_sketch
from ansorpy.schedule.space import Space, Table
from ansorpy.schedule.state import History, State
from ansorpy.schedule.steps.base import Step
from ansorpy.target import Target

__all__ = ["Pair", "PartialSketch", "PlacedSketch", "Recovered", "SketchSampler"]


class Pair(NamedTuple):
    """The name of a definition of a task and the number of one of its sketches."""

    definition: str
    sketch: int


@dataclass(frozen=True, eq=False)
class PlacedSketch:
    """A sketch of a task, number ``number``, with its compute locations chosen.

    ``definition`` names the scheduled definition: the task's own or an algorithm's.
    ``placed`` is the state before annotation: its first ``sketch_steps`` steps are the sketch's,
    the others place stages.  ``make`` makes one of a sketch's number and a placed state, the same
    object each time while it is cached.

    It has the interface of :class:`~ansorpy.schedule.space.Space`; the annotation rules
    draw rows, and the preset's mutations mutate them.
    """

    definition: str
    placed: State
    number: int
    sketch_steps: int
    space: Space
    target: Target
    preset: Preset
    make: Callable[[int, State], PlacedSketch]

    @property
    def pair(self) -> Pair:
        """The definition and the number of the sketch."""
        return Pair(self.definition, self.number)

    @property
    def state(self) -> State:
        """The program, with sizes and counts still open."""
        return self.space.state

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names in table order."""
        return self.space.columns

    @cached_property
    def key(self) -> str:
        """A text that is the same for two placed sketches exactly when they are equal."""
        return f"{self.definition}: {self.state.history}"

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """*n* rows drawn by the annotation rules; constraints are not applied."""
        table = self.space.sample(n, rng)
        if not self.space.decisions:
            return table
        for rule in self.preset.annotation:
            table = rule.sample(self.space, table, self.target, rng)
        return table

    def mutate(self, table: Table, rng: np.random.Generator) -> Table:
        """*table* with every row mutated once, by a mutation drawn by weight for each row."""
        mutations = self.preset.mutations
        weights = np.asarray([weight for _, weight in mutations])
        drawn = rng.choice(len(mutations), size=len(table), p=weights / weights.sum())
        mutated = table.copy()
        for number, (mutation, _) in enumerate(mutations):
            rows = np.flatnonzero(drawn == number)
            if len(rows):
                mutated[rows] = mutation.apply(self.space, table[rows], rng)
        return mutated

    def neighbour(self, rng: np.random.Generator) -> PlacedSketch | None:
        """The sketch with one stage computed at another location; None if no stage can move."""
        if self.preset.move is None:
            return None
        moved = self.preset.move.move(self.placed, rng, self.sketch_steps)
        return None if moved is None else self.make(self.number, moved)

    def adopt(self, other: PlacedSketch, table: Table, rng: np.random.Generator) -> Table:
        """Convert *other*'s *table* to rows of this sketch; decisions it lacks are drawn."""
        return carry_over(other.space, table, self.space, rng)

    def resolve(self, row: Sequence[int] | Table) -> State:
        """The program of one row."""
        return self.space.resolve(row)

    def valid(self, table: Table) -> npt.NDArray[np.bool_]:
        """Mask of the rows that satisfy every constraint."""
        return self.space.valid(table)


@dataclass(frozen=True, eq=False)
class PartialSketch:
    """A sketch, number ``number``, with some of its placement decisions made in ``state``.

    ``rules`` still decide, the first of them about ``subjects``.  ``decided`` is the last decision,
    for people to read.
    """

    number: int
    state: State
    target: Target
    rules: tuple[PlacementRule[Any], ...]
    subjects: tuple[Subject, ...]
    make: Callable[[int, State], PlacedSketch]
    decided: str = ""

    @classmethod
    def begin(
        cls,
        number: int,
        state: State,
        target: Target,
        rules: Sequence[PlacementRule[Any]],
        make: Callable[[int, State], PlacedSketch],
    ) -> PartialSketch:
        """A sketch of which nothing is placed."""
        return cls(number, state, target, tuple(rules), (), make)._next_rule(*rules)

    @property
    def options(self) -> tuple[PartialSketch, ...]:
        """What the next decision may lead to; () if all are made."""
        return self._settled[1]

    def placed(self) -> PlacedSketch:
        """The placed sketch; requires that there are no :attr:`options`."""
        return self.make(self.number, self._settled[0].state)

    def draw(self, rng: np.random.Generator) -> PlacedSketch:
        """A placed sketch whose remaining decisions are drawn by the rules."""
        state = self.state
        for at, rule in enumerate(self.rules):
            state = rule.draw(state, self.target, rng, self.subjects if at == 0 else None)
        return self.make(self.number, state)

    def every(self) -> Iterator[PlacedSketch]:
        """All placed sketches that begin so, in order; one may occur more than once."""
        if not self.options:
            yield self.placed()
        for option in self.options:
            yield from option.every()

    @cached_property
    def _settled(self) -> tuple[PartialSketch, tuple[PartialSketch, ...]]:
        """This sketch past all decisions that leave no choice, and what the next one leads to."""
        at = self
        while at.rules:
            if not at.subjects:
                at = at._next_rule(*at.rules[1:])
                continue
            following = at._following()
            if len(following) > 1:
                return at, following
            at = following[0]
        return at, ()

    def _following(self) -> tuple[PartialSketch, ...]:
        """What the decision about the first subject leads to, equal results once."""
        rule, (subject, *others) = self.rules[0], self.subjects
        reached: dict[History, tuple[State, str]] = {}
        for option in rule.options(self.state, subject, self.target):
            state = rule.take(self.state, subject, option)
            reached.setdefault(state.history, (state, f"{subject}: {option}"))
        found = reached.values() or [(self.state, "")]
        return tuple(
            replace(self, state=state, subjects=tuple(others), decided=decided)
            for state, decided in found
        )

    def _next_rule(self, *rules: PlacementRule[Any]) -> PartialSketch:
        subjects = tuple(rules[0].subjects(self.state)) if rules else ()
        return replace(self, rules=rules, subjects=subjects)


@dataclass(frozen=True, eq=False)
class Recovered:
    """Recorded schedules of one sketch: row *r* of ``table`` is schedule ``members[r]``."""

    sketch: PlacedSketch
    table: Table
    members: npt.NDArray[np.intp]


class SketchSampler:
    """Draws placed sketches of one task; the sketches of all its definitions are derived once.

    Those used last are cached: building the formulas of a placed sketch's tables
    (:mod:`ansorpy.schedule.tables.formulas`) takes longer than a round spends evaluating them.

    Args:
        preset: The rules; by default :func:`~ansorpy.rules.presets.preset_for` of the task's
            target.
    """

    patience = 4
    most_kept = 64

    def __init__(self, task: Task, preset: Preset | None = None):
        self.target = task.target.with_threads(task.threads)
        self.preset = preset or preset_for(task.target)
        self.definitions = definitions(
            task.dag, self.preset.algorithms, self.target, task.precision
        )
        found = [
            (definition.name, sketch)
            for definition in self.definitions
            for sketch in generate_sketches(definition.dag, self.target, self.preset)
        ]
        self.pairs = tuple(Pair(name, number) for number, (name, _) in enumerate(found))
        self.sketches = tuple(sketch for _, sketch in found)
        self._kept: OrderedDict[tuple[int, History], PlacedSketch] = OrderedDict()

    def draw_one(self, rng: np.random.Generator) -> PlacedSketch:
        """A uniformly drawn sketch, placed at random."""
        return self.place(int(rng.integers(len(self.sketches))), rng)

    def begin(self, number: int) -> PartialSketch:
        """Sketch *number*, of which nothing is placed."""
        state, rules = self.sketches[number], self.preset.placement
        return PartialSketch.begin(number, state, self.target, rules, self._placed)

    def place(self, number: int, rng: np.random.Generator) -> PlacedSketch:
        """Sketch *number*, placed at random."""
        return self.begin(number).draw(rng)

    def _placed(self, number: int, state: State) -> PlacedSketch:
        """Sketch *number* placed as *state* is, from the cache if possible."""
        key = number, state.history
        found = self._kept.pop(key, None) or self._made(number, state)
        self._kept[key] = found
        if len(self._kept) > self.most_kept:
            self._kept.popitem(last=False)
        return found

    def _made(self, number: int, state: State) -> PlacedSketch:
        steps = len(self.sketches[number].history)
        space = _annotated(state, self.target, self.preset)
        name = self.pairs[number].definition
        return PlacedSketch(
            name, state, number, steps, space, self.target, self.preset, self._placed
        )

    def recover(self, definition: str, schedules: Sequence[Sequence[Step]]) -> list[Recovered]:
        """Turn recorded *schedules* of a definition into rows of the sketches they come from.

        Schedules that come from no current sketch, or violate a current constraint, are left out.
        Cost: each placed sketch is made once for all its schedules.
        """
        groups: dict[Skeleton, list[int]] = {}
        for number, steps in enumerate(schedules):
            groups.setdefault(skeleton_of(steps), []).append(number)
        found = []
        for skeleton, members in groups.items():
            left = members
            while left:
                tried, recovered = self._recovered(definition, skeleton, schedules, left)
                found += recovered
                left = [m for m in left if m not in tried]
        return found

    def _recovered(
        self,
        definition: str,
        skeleton: Skeleton,
        schedules: Sequence[Sequence[Step]],
        members: list[int],
    ) -> tuple[set[int], list[Recovered]]:
        """The *members* of the same placed sketch as the first, and their recovered rows."""
        for number, pair in enumerate(self.pairs):
            if pair.definition != definition:
                continue
            placed = placed_like(self.sketches[number], schedules[members[0]])
            if placed is None:
                continue
            sketch = self._placed(number, placed)
            if skeleton_of(sketch.state.history) == skeleton:
                table, at, allowed = rows_of(sketch.space, [schedules[m] for m in members])
                alike = np.array(members, dtype=np.intp)[at]
                found = Recovered(sketch, table[allowed], alike[allowed])
                return {members[0], *alike.tolist()}, [found]
        return {members[0]}, []

    def refit(
        self, definition: str, schedule: Sequence[Step], n: int, rng: np.random.Generator
    ) -> Iterator[tuple[PlacedSketch, Table]]:
        """Sketches like that of a *schedule* made for other shapes, with the rows nearest to it.

        Each comes with at most *n* rows, all valid, nearest first.  Sketches with more steps come
        first.  Each is made only when the iterator reaches it.
        """
        wanted = numbers_of(schedule)
        sketches = [k for k, pair in enumerate(self.pairs) if pair.definition == definition]
        for number in sorted(sketches, key=lambda k: -len(self.sketches[k].history)):
            placed = refitted_sketch(self.sketches[number], schedule)
            if placed is not None:
                made = self._placed(number, placed)
                sample = partial(made.sample, rng=rng)
                rows = nearest_rows(made.space, wanted, sample, n, rng)
                if len(rows):
                    yield made, rows

    def draw(
        self, n: int, rng: np.random.Generator, shares: Mapping[Pair, float] | None = None
    ) -> list[PlacedSketch]:
        """At most *n* distinct ones: first one of each sketch, as far as *n* allows, then random.

        With *shares*, only its pairs are used, those with a larger share first and more often.
        Returns fewer if ``patience`` consecutive draws yield nothing new.
        """
        numbers = [pair.sketch for pair in shares or self.pairs]
        even = np.full(len(numbers), 1 / len(numbers))
        chance = even if shares is None else (even + np.array(list(shares.values()))) / 2
        found: dict[str, PlacedSketch] = {}
        for number in rng.choice(numbers, min(n, len(numbers)), replace=False, p=chance):
            sketch = self.place(int(number), rng)
            found.setdefault(sketch.key, sketch)
        misses = 0
        while len(found) < n and misses < self.patience:
            sketch = self.place(int(rng.choice(numbers, p=chance)), rng)
            misses = misses + 1 if sketch.key in found else 0
            found.setdefault(sketch.key, sketch)
        return list(found.values())

    def every(self) -> Iterator[PlacedSketch]:
        """All placed sketches, each once, grouped by sketch and made lazily."""
        seen: set[str] = set()
        for number in range(len(self.sketches)):
            for sketch in self.begin(number).every():
                if sketch.key not in seen:
                    seen.add(sketch.key)
                    yield sketch


def _annotated(placed: State, target: Target, preset: Preset) -> Space:
    """The space of a placed sketch, with the decisions that the annotation rules open."""
    space = Space(placed)
    if placed.definition.routine is not None:
        return space
    for rule in preset.annotation:
        space = rule.declare(space, target)
    return space
