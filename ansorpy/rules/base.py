"""What every rule looks like: the four small interfaces a preset is made of."""

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
"""A state a rule made, and the number of the stage to look at next."""


class SketchRule(ABC):
    """One derivation rule.  Rules are frozen dataclasses; what can be tuned is a field."""

    @abstractmethod
    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        """Whether the rule applies to the stage, and why; changes nothing."""

    @abstractmethod
    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        """The states the rule makes; assumes :meth:`meets` said yes."""


class PlacementRule(ABC):
    """Draws, at random, what a structure fixes for all its rows (compute locations, ...)."""

    @abstractmethod
    def draw(self, state: State, target: Target, rng: np.random.Generator) -> State:
        """*state* with this rule's choices made."""

    @abstractmethod
    def every(self, state: State, target: Target) -> Iterator[State]:
        """Each state that :meth:`draw` may give, in order; a state may come more than once."""


class AnnotationRule(ABC):
    """Opens decisions, and says how initial rows fill them."""

    @abstractmethod
    def declare(self, space: Space, target: Target) -> Space:
        """*space* with more open decisions and constraints."""

    def sample(self, space: Space, table: Table, target: Target, rng: np.random.Generator) -> Table:
        """*table* (every decision uniform) with this rule's columns drawn as the rule prefers."""
        return table


class Mutation(ABC):
    """Changes rows of a population table; never sees a program."""

    @abstractmethod
    def apply(self, space: Space, table: Table, rng: np.random.Generator) -> Table:
        """A table of the same shape, each row mutated once (unchanged where it cannot be)."""
