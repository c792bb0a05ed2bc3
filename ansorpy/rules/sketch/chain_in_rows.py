"""The rule that computes a chain of two products in one kernel (CUDA)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.gpu.chain_rows import ChainPlan, chain_plan, with_chain_kernel
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["ChainInRows"]


@dataclass(frozen=True)
class ChainInRows(SketchRule):
    """Compute the inputs of a product, including another product, at blocks of result rows.

        for i, j: S[i, j] += Q[i, d] * K[d, j]      for i.0:                    # blocks
        for i: top[i] max= S[i, j]                    for i.1, j: S[i, j] += ...  # shared memory
        for i, j: E[i, j] = exp(S - top)       -->    for i.1: top[i] max= ...    # lanes of a row
        for i: sum[i] += E[i, j]                      for i.1, j: E[i, j] = ...
        for i, d: O[i, d] += E[i, j] * V[j, d]        for i.1: sum[i] += ...
        for i, d: Y[i, d] = O / sum                   for i.1, d: O += ...; Y = O / sum

    Stages exchange whole rows through shared memory; both products accumulate in registers and read
    tiles of their other operands from shared memory.
    Source: none in Ansor, whose fusion ends at one elementwise consumer.
    """

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        if stage_id != len(state.stages) - 1:
            return Verdict.skip("not the last stage")
        plan = chain_plan(state)
        if isinstance(plan, str):
            return Verdict.skip(plan)
        return Verdict.apply(
            f'blocks of rows of "{plan.kernel.last}" need disjoint parts of all stages'
        )

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        plan = chain_plan(state)
        assert isinstance(plan, ChainPlan)
        yield with_chain_kernel(plan), -1
