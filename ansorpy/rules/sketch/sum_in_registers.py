"""The rule that keeps an untiled sum in a thread's register (CUDA)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.ir.loops import ForKind
from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.matching.relations import has_reduce_iters, is_input
from ansorpy.rules.predicates import fusible_consumer
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["SumInRegisters", "summed_in_registers"]


@dataclass(frozen=True)
class SumInRegisters(SketchRule):
    """Have the thread that uses (or copies) the result of an untiled reduction compute it.

        for i:                            for i:
          for k: S[i] += f(i, k)    -->     for k: S += f(i, k)
        for i: T[i] = g(S[i])               T[i] = g(S)

    Differs: Ansor's threads accumulate in global memory, and the consumer is another kernel.
    """

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        stage = state.stage(stage_id)
        if is_input(state, stage) or not has_reduce_iters(stage):
            return Verdict.skip("it is not a reduction")
        if stage.relations or any(it.annotation is not ForKind.SERIAL for it in stage.iters):
            return Verdict.skip("its loops are already scheduled")
        if stage.attach is not None or stage.inlined or not stage.compute.axes:
            return Verdict.skip("it has no threads of its own")
        return Verdict.apply_and_skip_rest("an untiled sum fits in a register of its thread")

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        name = state.stage(stage_id).name
        state = summed_in_registers(state, name)
        first = state.attached(name)[0].name if state.attached(name) else name
        yield state, state.index(first) - 1


def summed_in_registers(state: State, name: str) -> State:
    """*state* with the untiled reduction *name* computed by the threads that use it."""
    consumer = fusible_consumer(state, state.stage(name), once_inlined=True)
    if consumer is not None:
        return state.compute_at(name, consumer.name, consumer.iters[-1])
    state, local = state.cache_write(name, "local")
    return state.compute_at(local, name, state.stage(name).iters[-1])
