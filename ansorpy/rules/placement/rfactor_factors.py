"""Drawing how much of a reduction an rfactor takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt

from ansorpy.rules.base import PlacementRule
from ansorpy.schedule.decisions import factorizations
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.base import Step
from ansorpy.schedule.steps.loops import SplitStep
from ansorpy.schedule.steps.storage import RfactorStep
from ansorpy.target import Target

__all__ = ["DrawRfactorFactors", "rfactor_splits"]


@dataclass(frozen=True)
class DrawRfactorFactors(PlacementRule):
    """Replace the factor of each split made for an rfactor by a random divisor.

    The new stage's shape depends on it, so it is part of the structure and no column.
    Source: TVM opens these splits after enumeration; ``max_innermost`` is its.  Differs: with
    ``most_parts`` an outer loop that is factored out, to be shared by threads, has two iterations
    or more and at most that many, where its extent has such a divisor.
    """

    max_innermost: int = 64
    most_parts: int | None = None

    def draw(self, state: State, target: Target, rng: np.random.Generator) -> State:
        chosen = {
            at: int(rng.choice(self._factors(state, at, extent)))
            for at, extent in rfactor_splits(state).items()
        }
        return _with_factors(state, chosen)

    def every(self, state: State, target: Target) -> Iterator[State]:
        splits = rfactor_splits(state)
        domains = [self._factors(state, at, extent) for at, extent in splits.items()]
        for factors in product(*domains):
            yield _with_factors(state, dict(zip(splits, map(int, factors), strict=True)))

    def _factors(self, state: State, at: int, extent: int) -> npt.NDArray[np.int64]:
        """The inner factors to draw from for the split that is step number *at*."""
        if self.most_parts is not None and _takes_outer_part(state, at):
            every = factorizations(extent, 1, extent)[:, 0]
            parts = extent // every
            shared = every[(parts > 1) & (parts <= self.most_parts)]
            if len(shared):
                return shared
        return factorizations(extent, 1, self.max_innermost)[:, 0]


def _with_factors(state: State, chosen: Mapping[int, int]) -> State:
    """*state* with the splits that are these steps splitting by these factors."""
    if not chosen:
        return state
    steps = [
        replace(step, factors=(chosen[at],)) if isinstance(step, SplitStep) and at in chosen
        else step
        for at, step in enumerate(state.history)
    ]  # fmt: skip
    return State.replay(state.base, steps)


def rfactor_splits(state: State) -> dict[int, int]:
    """Number of each split step that a later rfactor builds on -> extent of the loop it splits."""
    found: dict[int, int] = {}
    current = State.initial(state.base)
    for at, step in enumerate(state.history):
        if isinstance(step, SplitStep) and _feeds_rfactor(state, at, step):
            found[at] = current.stage(step.stage).iter(step.iter).extent or 1
        current = current.do(step)
    return found


def _feeds_rfactor(state: State, at: int, split: SplitStep) -> bool:
    """True when the next step on the split's stage factors out one of its two parts."""
    step = _next_on_stage(state, at)
    parts = (f"{split.iter}.0", f"{split.iter}.1")
    return isinstance(step, RfactorStep) and step.iter in parts


def _takes_outer_part(state: State, at: int) -> bool:
    step = _next_on_stage(state, at)
    return isinstance(step, RfactorStep) and step.iter.endswith(".0")


def _next_on_stage(state: State, at: int) -> Step | None:
    """The step after number *at* that changes the same stage."""
    name = state.history[at].stage
    return next((step for step in state.history[at + 1 :] if step.stage == name), None)
