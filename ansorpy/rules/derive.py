"""Derivation: all sketches of a definition, and a trace of each rule's answers.

Derivation starts at the last stage.  Each rule in turn is tried on the current stage; the states
it makes continue at the stage it returns.  A state past its first stage is a sketch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Precision
from ansorpy.rules.algorithms.base import Definition, definitions
from ansorpy.rules.base import Derived
from ansorpy.rules.verdict import Answer, Verdict
from ansorpy.schedule.state import State
from ansorpy.target import Target

if TYPE_CHECKING:
    from ansorpy.rules.presets import Preset

__all__ = ["Derivation", "TraceRow", "derive", "explain", "generate_sketches"]


@dataclass(frozen=True)
class TraceRow:
    """One trial: what *rule* answered about *stage* of the *branch*-th state visited."""

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
    """The sketches of a definition and every trial on the way, in order."""

    sketches: tuple[State, ...]
    trace: tuple[TraceRow, ...]


def derive(definition: ComputeDAG, target: Target, preset: Preset) -> Derivation:
    """Enumerate the sketches of *definition* breadth first.

    If a rule answers "apply", later rules are tried on the same state too; "apply and skip rest"
    makes it the last one.  Paper: OSDI'20 §4.1.
    """
    level: list[Derived] = [(State.initial(definition), len(definition.ops) - 1)]
    sketches: list[State] = []
    trace: list[TraceRow] = []
    branch = 0
    while level:
        following: list[Derived] = []
        for state, stage_id in level:
            if stage_id < 0:
                sketches.append(state)
                continue
            following += _one_stage(state, stage_id, target, preset, branch, trace)
            branch += 1
        level = following
    return Derivation(tuple(sketches), tuple(trace))


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
    """All sketches of *definition* in the order they are found."""
    return list(derive(definition, target, preset).sketches)


def explain(
    dag: ComputeDAG,
    target: Target,
    preset: Preset,
    precision: Precision = "default",
    remark: Callable[[Definition], str] = lambda definition: "",
) -> str:
    """For each definition, a table of rule × stage × verdict × reason, then its sketches.

    *remark* returns text to print after a definition's name.
    """
    parts: list[str] = []
    for definition in definitions(dag, preset.algorithms, target, precision):
        derivation = derive(definition.dag, target, preset)
        error = f", error {definition.error:.1e} of the largest output" * bool(definition.error)
        parts += [
            f"definition {definition.name}{error}{remark(definition)}\n",
            *_rows(derivation.trace),
            *_sketch_texts(derivation.sketches),
            "",
        ]
    return "\n".join(parts).rstrip("\n")


def _rows(trace: Sequence[TraceRow]) -> list[str]:
    return [f"{'#':>3}  {'stage':<20} {'rule':<30} verdict", *map(str, trace)]


def _sketch_texts(sketches: Sequence[State]) -> list[str]:
    return [f"\nsketch {n}:\n{sketch.text()}" for n, sketch in enumerate(sketches)]
