"""Why a definition has its sketches: the rules that apply to its stages, or every verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Precision
from ansorpy.ir.text.relations import relations_text
from ansorpy.rules.algorithms.base import Definition, definitions
from ansorpy.rules.derive import BREADTH, Derivation, TraceRow, derive
from ansorpy.target import Target

if TYPE_CHECKING:
    from ansorpy.rules.presets import Preset

__all__ = ["explain", "explain_relations"]

_SHOWN = 12
"""Sketches that are listed unless all are asked for."""


def explain(
    dag: ComputeDAG,
    target: Target,
    preset: Preset,
    precision: Precision = "default",
    remark: Callable[[Definition], str] = lambda definition: "",
    *,
    in_full: bool = False,
) -> str:
    """For each definition, the rules that apply to its stages, and what makes each sketch.

    Args:
        remark: Returns text to print after a definition's name.
        in_full: Print every rule's verdict on each stage of each state, and each sketch's loops.
    """
    parts: list[str] = []
    for definition in definitions(dag, preset.algorithms, target, precision):
        derivation = derive(definition.dag, target, preset)
        error = f", error {definition.error:.1e} of the largest output" * bool(definition.error)
        parts += [
            f"definition {definition.name}{error}{remark(definition)}",
            *(_everything(derivation) if in_full else _applied(derivation)),
            *_left_out(derivation.left_out),
            "",
        ]
    return "\n".join(parts).rstrip("\n")


def explain_relations(
    dag: ComputeDAG, target: Target, preset: Preset, precision: Precision = "default"
) -> str:
    """For each definition, the access relations of its stages, which the rules examine."""
    found = definitions(dag, preset.algorithms, target, precision)
    return "\n\n".join(f"definition {d.name}\n\n{relations_text(d.dag)}" for d in found)


def _applied(derivation: Derivation) -> list[str]:
    """A row for each rule that applies, below the stages with the same rules, then the sketches."""
    rules: dict[str, dict[str, None]] = {}
    for row in derivation.trace:
        if row.verdict.applies:
            rules.setdefault(row.stage, {})[_said(row)] = None
    alike: dict[tuple[str, ...], list[str]] = {}
    for stage, said in rules.items():
        alike.setdefault(tuple(said), []).append(stage)
    lines = [
        line
        for said, stages in alike.items()
        for line in (f"  {', '.join(stages)}", *(f"    {text}" for text in said))
    ]
    return [*lines, *_listed(derivation)]


def _said(row: TraceRow) -> str:
    made = f" -> {row.made} states" if row.made > 1 else ""
    return f"{row.rule}: {row.verdict.reason}{made}"


def _listed(derivation: Derivation) -> list[str]:
    """A line for each sketch, with the steps that not all of them have."""
    paths, number = derivation.paths, len(derivation.sketches)
    common = set(paths[0]).intersection(*paths[1:]) if number > 1 else set()
    lines = [
        f"  sketch {n}: {', '.join(str(s) for s in path if s not in common) or 'as it is'}"
        for n, path in enumerate(paths[:_SHOWN])
    ]
    more = [f"  and {number - _SHOWN} more sketches"] if number > _SHOWN else []
    return [*lines, *more]


def _everything(derivation: Derivation) -> list[str]:
    """A table of every verdict, then the sketches' loops."""
    texts = (f"\nsketch {n}:\n{state.text()}" for n, state in enumerate(derivation.sketches))
    heading = f"\n{'#':>3}  {'stage':<20} {'rule':<30} verdict"
    return [heading, *map(str, derivation.trace), *texts]


def _left_out(states: int) -> Sequence[str]:
    text = f"\n{states} states were left out: there were more than {BREADTH} at once"
    return [text] if states else []
