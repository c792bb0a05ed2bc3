"""The rule that makes a stage accumulate in a local buffer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.predicates import fusible_consumer, has_data_reuse
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["AddCacheWrite"]


@dataclass(frozen=True)
class AddCacheWrite(SketchRule):
    """Compute into ``<stage>.local`` and copy, so that the copy is a consumer to fuse with.

    Returns the same stage number, which is now that of the cache.  With ``exclusive``, as on GPUs,
    the stage is not also tried without a cache.

    Paper: OSDI'20 §4.1, Table 1 rule 5.  Differs: ``whole_epilogue``, see
    MultiLevelTilingWithFusion.
    """

    whole_epilogue: bool = False
    exclusive: bool = False

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        stage = state.stage(stage_id)
        if not has_data_reuse(state, stage):
            return Verdict.skip("its inputs are not re-read enough to tile")
        if self.whole_epilogue and not stage.compute.reduce_axes:
            return Verdict.skip("it does not reduce: no tile of sums to keep in registers")
        consumer = fusible_consumer(state, stage, once_inlined=self.whole_epilogue)
        if consumer is not None:
            return Verdict.skip(f'it can be fused with its consumer "{consumer.name}" instead')
        reason = "no consumer to fuse with: its copy becomes one"
        return Verdict.apply_and_skip_rest(reason) if self.exclusive else Verdict.apply(reason)

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        state, cached = state.cache_write(stage_id, "local")
        yield state, state.index(cached)
