"""The rule that computes a chain of stages block by block of its result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.matching.chain import Chain, find_chain
from ansorpy.rules.tiling.chain_tiling import ChainTiling
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["ChainAtBlock"]


@dataclass(frozen=True)
class ChainAtBlock(SketchRule):
    """Tile the last stage of a chain and compute all others inside its blocks.

        for p: V[p] = f(X, p)            for block of q:
        for p: M[p] += V[p] * U    -->     for p in block: V[...] = f(X, ...)
        for q: Y[q] = g(M, q)              for p in block: M[...] += V[...] * U   # register tile
                                           for q in block: Y[q] = g(M, q)

    One sketch has every producer inside the block, so that intermediate results stay in a core's
    caches.  Another computes the producers before the last product completely at the root, for
    results too small to be divided into blocks without recomputing them.

    Source: none in Ansor, whose fusion ends at one elementwise consumer.
    """

    max_innermost: int = 64

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        if stage_id != len(state.stages) - 1:
            return Verdict.skip("not the last stage")
        chain = find_chain(state)
        if isinstance(chain, str):
            return Verdict.skip(chain)
        reason = f'"{chain.product}" and its producers can be computed at blocks of the result'
        return Verdict.apply_and_skip_rest(reason)

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        chain = find_chain(state)
        assert isinstance(chain, Chain)
        for whole_prologue in (False, True):
            yield ChainTiling(chain, self.max_innermost, whole_prologue).state(), -1
