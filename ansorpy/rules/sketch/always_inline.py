"""The rule that substitutes simple stages into their readers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.ir.expr import Function
from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.predicates import is_strictly_inlineable
from ansorpy.rules.relations import has_reduce_iters, is_input
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["AlwaysInline", "inline_verdict"]


@dataclass(frozen=True)
class AlwaysInline(SketchRule):
    """Inline a stage that costs nothing to recompute; on CUDA, any without a reduction.

    Paper: OSDI'20 §4.1, Table 1 rule 2.  ``expensive``: TVM's list of calls not worth repeating.
    """

    expensive: frozenset[Function] = frozenset({Function.EXP})

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        return inline_verdict(state, stage_id, target, self.expensive)

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        yield state.compute_inline(stage_id), stage_id - 1


def inline_verdict(
    state: State, stage_id: int, target: Target, expensive: frozenset[Function]
) -> Verdict:
    """Whether the stage would be inlined, and why."""
    stage = state.stage(stage_id)
    if is_input(state, stage):
        return Verdict.skip("an input, there is nothing to inline")
    if state.dag.is_output(stage.op):
        return Verdict.skip("an output must be stored")
    if has_reduce_iters(stage):
        return Verdict.skip("a reduction would be repeated at every read")
    if target.kind == "cuda":
        return Verdict.apply_and_skip_rest("no reduction: recomputing beats a trip to memory")
    if is_strictly_inlineable(state, stage, expensive):
        return Verdict.apply_and_skip_rest("strictly inlineable: reads in order, cheap, no branch")
    return Verdict.skip("a branch, an expensive call, or reads out of axis order")
