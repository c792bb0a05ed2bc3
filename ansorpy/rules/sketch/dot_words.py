"""The rule that sums products of narrow types with dot-product instructions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.codegen.backends import codegen_of
from ansorpy.ir.expr import Function
from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.matching.relations import is_input, is_tiled
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.lowering.dots import dot_form, function_for
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["DotWords"]


@dataclass(frozen=True)
class DotWords(SketchRule):
    """Sum dot products of words of four bytes or two bfloat16 (VNNI, AVX512-BF16, Arm's sdot).

    The result is an ordinary reduction over 32-bit words: later rules tile it, pack its operands
    and keep its sums in registers.  An instruction does several products for the price of one, so
    nothing else is tried.
    """

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        stage = state.stage(stage_id)
        if is_input(state, stage) or dot_form(stage.op) is None or is_tiled(stage):
            return Verdict.skip("no sum of products of 8-bit integers or bfloat16")
        if _function(stage, target) is None:
            return Verdict.skip("the target has no dot-product instruction for these types")
        return Verdict.apply_and_skip_rest("one instruction adds up several products")

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        stage = state.stage(stage_id)
        fn = _function(stage, target)
        assert fn is not None, stage.name
        state = state.dot(stage.name, fn.value)
        yield state, state.index(stage.name)


def _function(stage: Stage, target: Target) -> Function | None:
    form = dot_form(stage.op)
    return None if form is None else function_for(form, codegen_of(target).dots(target))
