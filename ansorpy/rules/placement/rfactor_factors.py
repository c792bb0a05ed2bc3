"""Drawing how much of a reduction an rfactor takes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ansorpy.rules.base import PlacementRule
from ansorpy.schedule.decisions import factorizations
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.loops import SplitStep
from ansorpy.schedule.steps.storage import RfactorStep
from ansorpy.target import Target

__all__ = ["DrawRfactorFactors", "rfactor_splits"]


@dataclass(frozen=True)
class DrawRfactorFactors(PlacementRule):
    """Replace the factor of each split made for an rfactor by a random divisor.

    The new stage's shape depends on it, so it is part of the structure and no column.
    Source: TVM opens these splits after enumeration; ``max_innermost`` is its.
    """

    max_innermost: int = 64

    def draw(self, state: State, target: Target, rng: np.random.Generator) -> State:
        chosen = {
            at: int(rng.choice(factorizations(extent, 1, self.max_innermost)[:, 0]))
            for at, extent in rfactor_splits(state).items()
        }
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
    for step in state.history[at + 1 :]:
        if step.stage == split.stage:
            parts = (f"{split.iter}.0", f"{split.iter}.1")
            return isinstance(step, RfactorStep) and step.iter in parts
    return False
