"""The four rule interfaces whose implementations make up a preset."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

import numpy as np

from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.space import Space, Table
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["AnnotationRule", "Derived", "Mutation", "PlacementRule", "SketchRule"]

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


class PlacementRule(ABC):
    """Draws what a placed sketch fixes for all rows (compute locations, ...)."""

    @abstractmethod
    def draw(self, state: State, target: Target, rng: np.random.Generator) -> State:
        """*state* with this rule's choices drawn."""

    @abstractmethod
    def every(self, state: State, target: Target) -> Iterator[State]:
        """Each state that :meth:`draw` may return, in order; a state may occur more than once."""


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
