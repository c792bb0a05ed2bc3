"""Print a state as the loop nest that it represents, as one line, or for a notebook."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from html import escape
from typing import TYPE_CHECKING

from ansorpy.ir.expr import AxisKind, Reduce, ReduceKind
from ansorpy.ir.loops import ForKind
from ansorpy.ir.text.printer import text
from ansorpy.notebook import card
from ansorpy.schedule.decisions import known
from ansorpy.schedule.lowering.loop_kinds import marked_parallel, marked_vector
from ansorpy.schedule.stage import Iter, Marked, SplitRelation, Stage
from ansorpy.schedule.tables.size import Size

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["stages_text", "state_card", "state_summary"]

_UPDATES = {
    ReduceKind.SUM: "+=", ReduceKind.PROD: "*=", ReduceKind.MAX: "max=", ReduceKind.MIN: "min=",
}  # fmt: skip


def state_summary(state: State) -> str:
    """What *state* computes, and how many stages, steps and open decisions it has, as one line."""
    counts = {"stage": state.stages, "step": state.history, "open decision": state.decisions}
    parts = [f"{len(of)} {name}{'' if len(of) == 1 else 's'}" for name, of in counts.items() if of]
    return f"<State of {state.definition.signature}: {', '.join(parts)}>"


def state_card(state: State) -> str:
    """*state* as HTML: its loops, the steps that made it, and its definition."""
    folded = {"Schedule": str(state.history)} if state.history else {}
    return card(
        "State",
        state.definition.signature,
        {"open": ", ".join(decision.name for decision in state.decisions)},
        {**folded, "Definition": text(state.definition)},
        [f"<pre>{escape(state.text())}</pre>"],
    )


def stages_text(state: State, only: str | None, marked: set[str]) -> str:
    """All root stages with the stages computed inside them, or the loops of stage *only*."""
    lines: list[str] = []
    if only is not None:
        _stage(state, state.stage(only), 0, lines, marked, nested=False)
        return "\n".join(lines)
    for stage in state.stages:
        if stage.is_placeholder:
            lines.append(f"placeholder {stage.name}")
        elif stage.compute.routine is not None:
            inputs = ", ".join(op.name for op in state.current_dag.reads(stage.op))
            lines.append(f"{stage.name} = {stage.compute.routine.name}({inputs})")
        elif stage.attach is None and not stage.inlined:
            _stage(state, stage, 0, lines, marked, nested=True)
    return "\n".join(lines)


def _stage(
    state: State, stage: Stage, depth: int, lines: list[str], marked: set[str], *, nested: bool
) -> None:
    if stage.max_unroll != (0,):
        limit = known(stage.max_unroll)
        lines.append(f"{'  ' * depth}{stage.name} auto_unroll: {'?' if limit is None else limit}")
    for it in stage.iters:
        extent = "?" if it.extent is None else str(it.extent)
        mark = "> " if it.name in marked else ""
        lines.append(f"{mark}{'  ' * depth}for {it.name} in 0..{extent}{_note(stage, it)}")
        depth += 1
        for inner in state.attached(stage) if nested else ():
            if inner.attach is not None and inner.attach.iter == it.name:
                _stage(state, inner, depth, lines, marked, nested=True)
    if not stage.is_placeholder:
        axes = ", ".join(axis.name for axis in stage.compute.axes)
        body = stage.compute.body
        op = _UPDATES[body.kind] if isinstance(body, Reduce) else "="
        lines.append(f"{'  ' * depth}{stage.name}[{axes}] {op} ...")


def _note(stage: Stage, it: Iter) -> str:
    notes = []
    if it.annotation is not ForKind.SERIAL:
        notes.append(it.annotation.value)
    notes += _marked(stage.parallel, it, "parallel", partial(marked_parallel, stage, it.name))
    notes += _marked(stage.vectorize, it, "vectorized", partial(marked_vector, stage, it.name))
    if it.kind is AxisKind.REDUCE:
        notes.append("lanes of a reduction" if it.name == stage.lanes else "reduce")
    notes += [
        f"tail: {r.tail}"
        for r in stage.relations
        if isinstance(r, SplitRelation) and r.two_bodies and r.children[0] == it.name
    ]
    return f"  # {', '.join(notes)}" if notes else ""


def _marked(mark: Marked | None, it: Iter, word: str, chosen: Callable[[int], Size]) -> list[str]:
    """*word* if *it* is one of the *chosen* marked loops; ``word?`` while their number is open."""
    if mark is None or it.name not in mark.iters:
        return []
    count = known(mark.count)
    if count is None:
        return [f"{word}?"]
    return [word] if chosen(count) == 1 else []
