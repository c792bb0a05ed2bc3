"""The rule that keeps the input of a constant-matrix stage out of its unrolled loops (CUDA)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.ir.loops import ForKind
from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.matching.relations import consumers, producers
from ansorpy.rules.sketch.always_inline import inline_verdict
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.stage import Iter, Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["SpecialComputeLocation"]


@dataclass(frozen=True)
class SpecialComputeLocation(SketchRule):
    """Compute a stage right outside its consumer's unrolled loops instead of inlining it there.

    Winograd's transform reads its input tile alpha² times; if the gather of the tile were inlined,
    it would be repeated as often.  Source: TVM's RuleSpecialComputeLocationGPU.
    """

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        stage = state.stage(stage_id)
        if not producers(state, stage):
            return Verdict.skip("it reads nothing")
        if not inline_verdict(state, stage_id).applies:
            return Verdict.skip("it would not be inlined anyway")
        readers = consumers(state, stage)
        if len(readers) != 1 or not readers[0].compute.attrs.unroll_axes:
            return Verdict.skip("its consumer has no unroll_axes")
        if _before_unrolled(readers[0]) is None:
            return Verdict.skip(f'"{readers[0].name}" has no loop outside the unrolled ones')
        return Verdict.apply_and_skip_rest(f'"{readers[0].name}" reads it in unrolled loops')

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        (reader,) = consumers(state, state.stage(stage_id))
        host = _before_unrolled(reader)
        assert host is not None, reader.name
        yield state.compute_at(stage_id, reader.name, host), stage_id - 1


def _before_unrolled(stage: Stage) -> Iter | None:
    """The innermost loop outside the first unrolled loop."""
    for outer, it in zip(stage.iters, stage.iters[1:], strict=False):
        if it.annotation is ForKind.UNROLLED:
            return outer
    return None
