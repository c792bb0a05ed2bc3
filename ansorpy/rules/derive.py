"""Sketch derivation: all sketches of a definition, and a trace of each rule's verdicts.

Derivation starts at the last stage.  Each rule in turn is tried on the current stage; the states
that it derives continue at the stage that it returns.  A state past its first stage is a sketch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, TypeVar

from ansorpy.ir.dag import ComputeDAG
from ansorpy.rules.verdict import Answer, Verdict
from ansorpy.schedule.state import State
from ansorpy.target import Target

if TYPE_CHECKING:
    from ansorpy.rules.presets import Preset

__all__ = [
    "BREADTH",
    "Applied",
    "Derivation",
    "TraceRow",
    "derive",
    "generate_sketches",
]

T = TypeVar("T")


@dataclass(frozen=True)
class TraceRow:
    """One application: the verdict of *rule* on *stage* of the *branch*-th state visited."""

    branch: int
    stage: str
    rule: str
    verdict: Verdict
    made: int

    def __str__(self) -> str:
        made = f" -> {self.made} state{'s' * (self.made != 1)}" if self.verdict.applies else ""
        return f"{self.branch:>3}  {self.stage:<20} {self.rule:<30} {self.verdict}{made}"


@dataclass(frozen=True)
class Applied:
    """A step to a sketch: *rule* changed *stage*; its result was the *number*-th of *of*."""

    stage: str
    rule: str
    number: int
    of: int

    def __str__(self) -> str:
        which = f" ({self.number + 1} of {self.of})" if self.of > 1 else ""
        return f"{self.stage} {self.rule}{which}"


@dataclass(frozen=True)
class Derivation:
    """The sketches of a definition, and the verdicts that led to them, in order.

    ``paths`` has the rules that made each sketch.  ``left_out`` counts the states that were dropped
    because there were too many.
    """

    sketches: tuple[State, ...]
    trace: tuple[TraceRow, ...]
    paths: tuple[tuple[Applied, ...], ...]
    left_out: int = 0


def derive(definition: ComputeDAG, target: Target, preset: Preset) -> Derivation:
    """Enumerate the sketches of *definition* breadth first, at most :data:`BREADTH` of them.

    If a rule's verdict is "apply", later rules are tried on the same state too; "apply and skip
    rest" makes it the last one.  Paper: OSDI'20 §4.1.  Differs: if there are more than
    :data:`BREADTH` states at one level, only that many are continued, drawn with a fixed seed.

    A routine has one program, which no rule changes.
    """
    if definition.routine is not None:
        return Derivation((State.initial(definition),), (), ((),))
    level = [_Branch(State.initial(definition), len(definition.ops) - 1)]
    sketches: list[_Branch] = []
    trace: list[TraceRow] = []
    branch = left_out = 0
    while level:
        following: list[_Branch] = []
        for one in level:
            if one.stage_id < 0:
                sketches.append(one)
                continue
            following += _one_stage(one, target, preset, branch, trace)
            branch += 1
        level = _thinned(following)
        left_out += len(following) - len(level)
    kept = _thinned(sketches)
    left_out += len(sketches) - len(kept)
    states, paths = tuple(one.state for one in kept), tuple(one.path for one in kept)
    return Derivation(states, tuple(trace), paths, left_out)


@dataclass(frozen=True)
class _Branch:
    """A state whose stages down to *stage_id* are still to be visited, and what made it."""

    state: State
    stage_id: int
    path: tuple[Applied, ...] = ()


BREADTH = 512
"""Maximum number of states continued at one level, and of sketches of a definition.

Each product of a definition multiplies the number of sketches by three to six, and a search takes a
few hundred trials: most sketches beyond this number would never be measured.
"""


def _thinned(level: list[T]) -> list[T]:
    """At most :data:`BREADTH` states of *level*, in order: the first one and a fixed sample.

    With a regular choice, the last stage would be scheduled in the same way in all of them.
    """
    if len(level) <= BREADTH:
        return level
    others = Random(0).sample(range(1, len(level)), BREADTH - 1)
    return [level[n] for n in (0, *sorted(others))]


def _one_stage(
    at: _Branch, target: Target, preset: Preset, branch: int, trace: list[TraceRow]
) -> Iterator[_Branch]:
    name = at.state.stage(at.stage_id).name
    for rule in preset.sketch:
        verdict, named = rule.meets(at.state, at.stage_id, target), type(rule).__name__
        made = list(rule.apply(at.state, at.stage_id, target)) if verdict.applies else []
        trace.append(TraceRow(branch, name, named, verdict, len(made)))
        for number, (state, stage_id) in enumerate(made):
            step = (Applied(name, named, number, len(made)),) if state is not at.state else ()
            yield _Branch(state, stage_id, at.path + step)
        if verdict.answer is Answer.APPLY_AND_SKIP_REST:
            break


def generate_sketches(definition: ComputeDAG, target: Target, preset: Preset) -> list[State]:
    """All sketches of *definition*, in the order in which they are found."""
    return list(derive(definition, target, preset).sketches)
