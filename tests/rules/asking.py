"""Short ways to ask a rule about a stage of a definition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from textwrap import dedent
from typing import Any

from ansorpy.ir.tensor import Tensor
from ansorpy.rules.base import PlacementRule, SketchRule
from ansorpy.rules.verdict import Answer, Verdict
from ansorpy.schedule.state import State
from ansorpy.target import Target

CPU = replace(Target.parse("x86-64-v3"), cores=4)
CUDA = Target.parse("sm_80")

SKIP, APPLY, ALONE = Answer.SKIP, Answer.APPLY, Answer.APPLY_AND_SKIP_REST


def ask(
    rule: SketchRule, state: State | Sequence[Tensor], stage: str, target: Target = CPU
) -> Verdict:
    """The rule's verdict on *stage*."""
    state = state if isinstance(state, State) else State.initial(state)
    return rule.meets(state, state.index(stage), target)


def derive(
    rule: SketchRule, state: State | Sequence[Tensor], stage: str, target: Target = CPU
) -> list[tuple[State, str]]:
    """The states the rule makes, each with the name of the stage looked at next ("" at the end).

    The rule must apply.
    """
    state = state if isinstance(state, State) else State.initial(state)
    assert ask(rule, state, stage, target).applies
    made = rule.apply(state, state.index(stage), target)
    return [(s, s.stages[n].name if n >= 0 else "") for s, n in made]


def shows(state: State, expected: str) -> None:
    """Assert that the state prints as *expected*, placeholders left out."""
    lines = [x for x in state.text().splitlines() if not x.startswith("placeholder")]
    assert "\n".join(lines) == dedent(expected).strip("\n")


def outcomes(rule: PlacementRule[Any], state: State, target: Target = CPU) -> list[State]:
    """The states to which the rule's only decision about *state* may lead."""
    [subject] = rule.subjects(state)
    return [rule.take(state, subject, o) for o in rule.options(state, subject, target)]
