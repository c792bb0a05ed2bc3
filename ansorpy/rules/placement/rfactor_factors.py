"""Draw the split factors of rfactors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ansorpy.arrays import Ints
from ansorpy.rules.base import PlacementRule, Subject
from ansorpy.schedule.decisions import divisors, factorizations
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.base import Step
from ansorpy.schedule.steps.loops import SplitStep
from ansorpy.schedule.steps.storage import RfactorStep
from ansorpy.target import Target

__all__ = ["DrawRfactorFactors", "FactorRule", "before_rfactors", "rfactor_splits"]


class FactorRule(PlacementRule[int]):
    """Replaces the factors of the splits on which an rfactor builds.

    The shape of the rfactor's stage depends on it, so a placed sketch fixes it; it is no column.
    """

    def subjects(self, state: State) -> list[Subject]:
        """The numbers of the split steps."""
        return list(before_rfactors(state))

    def take(self, state: State, subject: Subject, option: int) -> State:
        split = state.history[int(subject)]
        assert isinstance(split, SplitStep), split
        steps = [*state.history]
        steps[int(subject)] = replace(split, factors=(option,))
        return State.replay(state.definition, steps)


@dataclass(frozen=True)
class DrawRfactorFactors(FactorRule):
    """Replace the factor of each split made for an rfactor by a random divisor.

    Source: TVM opens these splits after enumeration; ``max_innermost`` is TVM's.  Differs: with
    ``most_parts``, an outer loop that is factored out for threads has from two to that many
    iterations.  Candidates are divisors of its extent, and powers of two if no divisor is of about
    that size and each part has ``max_innermost`` elements; the last part is then shorter.
    """

    max_innermost: int = 64
    most_parts: int | None = None

    def options(self, state: State, subject: Subject, target: Target) -> list[int]:
        at = int(subject)
        factors: list[int] = self._factors(state, at, rfactor_splits(state)[at]).tolist()
        return factors

    def _factors(self, state: State, at: int, extent: int) -> Ints:
        """The inner factors from which to draw for the split at step number *at*."""
        most = self.most_parts
        if most is not None and _takes_outer_part(state, at):
            every = np.array(divisors(extent), dtype=np.int64)
            parts = extent // every
            shared = every[(parts > 1) & (parts <= most)]
            powers = _missing(2 ** np.arange(1, most.bit_length(), dtype=np.int64), parts)
            powers = powers[powers * self.max_innermost <= extent]
            shared = np.union1d(shared, -(-extent // powers))
            if len(shared):
                return shared
        return factorizations(extent, 1, self.max_innermost)[:, 0]


def _missing(powers: Ints, parts: Ints) -> Ints:
    """The *powers* of two that have none of *parts* within a factor of two."""
    near = (2 * parts > powers[:, None]) & (parts < 2 * powers[:, None]) & (parts > 1)
    found: Ints = powers[~near.any(axis=1)]
    return found


def rfactor_splits(state: State) -> dict[int, int]:
    """The splits on which a later rfactor builds: step number -> extent of the loop split."""
    return {
        at: before.stage(split.stage).iter(split.iter).extent or 1
        for at, (split, before) in before_rfactors(state).items()
    }


def before_rfactors(state: State) -> dict[int, tuple[SplitStep, State]]:
    """The splits on which a later rfactor builds, by step number, each with the state before it."""
    found: dict[int, tuple[SplitStep, State]] = {}
    current, done = State.initial(state.definition), 0
    for at, step in enumerate(state.history):
        if isinstance(step, SplitStep) and _feeds_rfactor(state, at, step):
            for earlier in state.history[done:at]:
                current = current.do(earlier)
            found[at], done = (step, current), at
    return found


def _feeds_rfactor(state: State, at: int, split: SplitStep) -> bool:
    """Whether the next step on the split's stage factors out one of its two parts."""
    step = _next_on_stage(state, at)
    parts = (f"{split.iter}.0", f"{split.iter}.1")
    return isinstance(step, RfactorStep) and step.iter in parts


def _takes_outer_part(state: State, at: int) -> bool:
    step = _next_on_stage(state, at)
    return isinstance(step, RfactorStep) and step.iter.endswith(".0")


def _next_on_stage(state: State, at: int) -> Step | None:
    """The next step after number *at* on the same stage."""
    name = state.history[at].stage
    return next((step for step in state.history[at + 1 :] if step.stage == name), None)
