"""The four rule interfaces whose implementations make up a preset."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Generic, TypeAlias, TypeVar

import numpy as np

from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.space import Space, Table
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["AnnotationRule", "Derived", "Mutation", "PlacementRule", "SketchRule", "Subject"]

Derived = tuple[State, int]
"""A state derived by a rule, and the number of the stage to visit next."""


class SketchRule(ABC):
    """A derivation rule.  Rules are frozen dataclasses whose fields are their parameters."""

    @abstractmethod
    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        """Whether the rule applies to the stage, and why; without side effects."""

    @abstractmethod
    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        """The states that the rule derives; requires that the verdict of :meth:`meets` applies."""


Subject: TypeAlias = str | int
"""What a placement rule decides about: the name of a stage, or the number of a step."""

Place = TypeVar("Place")


class PlacementRule(ABC, Generic[Place]):
    """Decides what a placed sketch fixes for all rows (compute locations, ...), in order."""

    @abstractmethod
    def subjects(self, state: State) -> Sequence[Subject]:
        """What the rule decides about, in order; *state* is as earlier rules left it."""

    @abstractmethod
    def options(self, state: State, subject: Subject, target: Target) -> Sequence[Place]:
        """What may be decided about *subject*, once those before it are decided in *state*."""

    @abstractmethod
    def take(self, state: State, subject: Subject, option: Place) -> State:
        """*state* with one of the :meth:`options` taken."""

    def draw(
        self,
        state: State,
        target: Target,
        rng: np.random.Generator,
        subjects: Sequence[Subject] | None = None,
    ) -> State:
        """*state* with a random option taken for each of *subjects*, by default all."""
        for subject in self.subjects(state) if subjects is None else subjects:
            options = self.options(state, subject, target)
            if options:
                state = self.take(state, subject, options[int(rng.integers(len(options)))])
        return state


class AnnotationRule(ABC):
    """Opens decisions, and draws their values for initial rows."""

    @abstractmethod
    def declare(self, space: Space, target: Target) -> Space:
        """*space* with more open decisions and constraints."""

    def sample(self, space: Space, table: Table, target: Target, rng: np.random.Generator) -> Table:
        """*table*, whose decisions were drawn uniformly, with this rule's columns drawn again."""
        return table


class Mutation(ABC):
    """Changes rows of a population table; never sees a program."""

    @abstractmethod
    def apply(self, space: Space, table: Table, rng: np.random.Generator) -> Table:
        """*table* with each row mutated once, or unchanged if it cannot be mutated."""
