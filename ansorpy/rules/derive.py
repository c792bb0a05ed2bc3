"""Sketch derivation: all sketches of a definition, and a trace of each rule's verdicts.

Derivation starts at the last stage.  Each rule in turn is tried on the current stage; the states
that it derives continue at the stage that it returns.  A state past its first stage is a sketch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, TypeVar

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Precision
from ansorpy.ir.text.relations import relations_text
from ansorpy.rules.algorithms.base import Definition, definitions
from ansorpy.rules.base import Derived
from ansorpy.rules.verdict import Answer, Verdict
from ansorpy.schedule.state import State
from ansorpy.target import Target

if TYPE_CHECKING:
    from ansorpy.rules.presets import Preset

__all__ = [
    "BREADTH",
    "Derivation",
    "TraceRow",
    "derive",
    "explain",
    "explain_relations",
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
class Derivation:
    """The sketches of a definition, and the verdicts that led to them, in order.

    ``left_out`` counts the states that were dropped because there were too many.
    """

    sketches: tuple[State, ...]
    trace: tuple[TraceRow, ...]
    left_out: int = 0


def derive(definition: ComputeDAG, target: Target, preset: Preset) -> Derivation:
    """Enumerate the sketches of *definition* breadth first, at most :data:`BREADTH` of them.

    If a rule's verdict is "apply", later rules are tried on the same state too; "apply and skip
    rest" makes it the last one.  Paper: OSDI'20 §4.1.  Differs: if there are more than
    :data:`BREADTH` states at one level, only that many are continued, drawn with a fixed seed.

    A routine has one program, which no rule changes.
    """
    if definition.routine is not None:
        return Derivation((State.initial(definition),), ())
    level: list[Derived] = [(State.initial(definition), len(definition.ops) - 1)]
    sketches: list[State] = []
    trace: list[TraceRow] = []
    branch = left_out = 0
    while level:
        following: list[Derived] = []
        for state, stage_id in level:
            if stage_id < 0:
                sketches.append(state)
                continue
            following += _one_stage(state, stage_id, target, preset, branch, trace)
            branch += 1
        level = _thinned(following)
        left_out += len(following) - len(level)
    kept = _thinned(sketches)
    return Derivation(tuple(kept), tuple(trace), left_out + len(sketches) - len(kept))


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
    state: State,
    stage_id: int,
    target: Target,
    preset: Preset,
    branch: int,
    trace: list[TraceRow],
) -> list[Derived]:
    name, found = state.stage(stage_id).name, list[Derived]()
    for rule in preset.sketch:
        verdict = rule.meets(state, stage_id, target)
        made = list(rule.apply(state, stage_id, target)) if verdict.applies else []
        trace.append(TraceRow(branch, name, type(rule).__name__, verdict, len(made)))
        found += made
        if verdict.answer is Answer.APPLY_AND_SKIP_REST:
            break
    return found


def generate_sketches(definition: ComputeDAG, target: Target, preset: Preset) -> list[State]:
    """All sketches of *definition*, in the order in which they are found."""
    return list(derive(definition, target, preset).sketches)


def explain(
    dag: ComputeDAG,
    target: Target,
    preset: Preset,
    precision: Precision = "default",
    remark: Callable[[Definition], str] = lambda definition: "",
) -> str:
    """For each definition, a table of rule, stage, verdict and reason, then its sketches.

    *remark* returns text to print after a definition's name.
    """
    parts: list[str] = []
    for definition in definitions(dag, preset.algorithms, target, precision):
        derivation = derive(definition.dag, target, preset)
        error = f", error {definition.error:.1e} of the largest output" * bool(definition.error)
        parts += [
            f"definition {definition.name}{error}{remark(definition)}\n",
            *_rows(derivation.trace),
            *_left_out(derivation.left_out),
            *_sketch_texts(derivation.sketches),
            "",
        ]
    return "\n".join(parts).rstrip("\n")


def explain_relations(
    dag: ComputeDAG, target: Target, preset: Preset, precision: Precision = "default"
) -> str:
    """For each definition, the access relations of its stages, which the rules examine."""
    found = definitions(dag, preset.algorithms, target, precision)
    return "\n\n".join(f"definition {d.name}\n\n{relations_text(d.dag)}" for d in found)


def _rows(trace: Sequence[TraceRow]) -> list[str]:
    return [f"{'#':>3}  {'stage':<20} {'rule':<30} verdict", *map(str, trace)]


def _left_out(states: int) -> list[str]:
    text = f"\n{states} states were left out: there were more than {BREADTH} at once"
    return [text] if states else []


def _sketch_texts(sketches: Sequence[State]) -> list[str]:
    return [f"\nsketch {n}:\n{sketch.text()}" for n, sketch in enumerate(sketches)]
