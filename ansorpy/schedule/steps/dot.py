"""The step that computes a sum of narrow products with dot products of 32-bit words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ansorpy.ir.dots import DOTS
from ansorpy.schedule.lowering.dots import dot_form, function_for, in_words
from ansorpy.schedule.steps.base import Step, compute_stage, named
from ansorpy.schedule.steps.storage import free_names, insert_stages

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["DotStep"]


@dataclass(frozen=True)
class DotStep(Step):
    """Sum dot products of words; operands are laid out as words where necessary.

    C[i, j] = sum_k A[i, k] * B[k, j]   -->   C[i, j] = sum_q dot(A[i, 4q..], B.words[q, j])
    """

    function: str
    kind: Literal["dot"] = "dot"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        form = dot_form(stage.op)
        if form is None or stage.is_arranged or state.attached(stage):
            raise self.error(
                state,
                "only an untiled sum of products of 8-bit integers or bfloat16 is a dot product",
                hint="cast both operands to the type of the sum: a[i, k].astype('int32') * ...",
            )
        possible = [fn for fn in DOTS if function_for(form, {fn}) is fn]
        function = named("dot product of these types", self.function, self, possible)
        new, extra = in_words(
            stage.compute, form, function, tuple(state.current_dag.constant_ops), free_names(state)
        )  # fmt: skip
        return insert_stages(state, stage.compute, new, extra)
