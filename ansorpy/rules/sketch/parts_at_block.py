"""The rule that computes parts of reductions, and their combination, at blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.matching.chain import Chain, find_chain, reused_axes
from ansorpy.rules.matching.packed import packed_parts, with_cheap_joiners_inlined
from ansorpy.rules.matching.relations import has_reduce_iters
from ansorpy.rules.matching.rowwise import at_block, block_axes
from ansorpy.rules.tiling.chain_tiling import ChainTiling
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["PartsAtBlock"]


@dataclass(frozen=True)
class PartsAtBlock(SketchRule):
    """Compute a chain at each part of its reduction, and combine the parts.

        for i, b, j: S[i, b, j] = ...              for i.0:                  # blocks of rows
        for i, b, j: E[i, b, j] = f(S)               for b:                  # parts
        for i, b: M[i, b] += E[i, b] * V[b]            for i.1, j: S = ...; E = f(S)
        for i, b: P[i, b] = (M, sum E, ..)   -->       for i.1: M += E * V   # register tile
        for i: Y[i] += P[i, b] * share[i, b]           for i.1: P = (M, ..)
                                                     for i.1, b: Y[i] += P * share

    The stage P has all results of a part side by side, and nothing else is needed of it.  In
    another sketch, all parts of all rows are computed first, in parallel: for few rows.

    Source: Dao et al. 2023, "Flash-Decoding"; none in Ansor, whose rfactor splits one sum.
    """

    max_rows: int = 64
    max_innermost: int = 64

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        if stage_id != len(state.stages) - 1 or state.history:
            return Verdict.skip("not the last stage, or some loops are already scheduled")
        parts = packed_parts(state)
        if parts is None:
            return Verdict.skip("no stage has all results of a part of a reduction")
        chain = find_chain(state, parts)
        if isinstance(chain, str):
            return Verdict.skip(chain)
        return Verdict.apply_and_skip_rest(f'all other stages combine the parts in "{parts}"')

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        parts = packed_parts(state)
        assert parts is not None
        state, members = with_cheap_joiners_inlined(state, parts)
        for inside in (True, False):
            placed = self._placed(state, parts, members, inside=inside)
            if placed is not None:
                chain = find_chain(placed, parts)
                assert isinstance(chain, Chain)
                yield ChainTiling(chain, self.max_innermost, whole_prologue=False).state(), -1

    def _placed(
        self, state: State, parts: str, members: list[str], *, inside: bool
    ) -> State | None:
        """*state* with the combination in blocks of rows, and *parts* in them if *inside*."""
        last = state.stage(state.current_dag.outputs[0].name)
        placed = [*members, parts] if inside else members
        axes = block_axes(state, last, placed)
        if not axes:
            return None if inside else state
        chain = find_chain(state, parts)
        assert isinstance(chain, Chain)
        reused = reused_axes(chain.state, parts, chain.product)
        rows = _rows_of(state, last, axes, [*members, parts], reused)
        row = next((name for name in reversed(axes) if name in rows), axes[-1])
        state, (outer, _) = state.split(
            last.name, row, (None,), max_innermost=self.max_rows,
            tail="guard" if has_reduce_iters(last) else "shift",
        )  # fmt: skip
        blocks = [*(name for name in axes if name != row), outer.name]
        others = [it.name for it in state.stage(last.name).iters if it.name not in blocks]
        state = state.reorder(last.name, [*blocks, *others])
        for name in placed:
            state = state.compute_at(name, last.name, outer)
        return state


def _rows_of(
    state: State, last: Stage, axes: Sequence[str], placed: Sequence[str], wanted: Set[str]
) -> set[str]:
    """Which of *axes* of the last stage select the axes *wanted* of ``placed[-1]``."""
    spans = Bounds(at_block(state, last.name, axes, placed), {}).region(placed[-1])
    found = zip(state.stage(placed[-1]).compute.axes, spans, strict=True)
    return {
        part.axis
        for axis, span in found
        if axis.name in wanted and span.origin is not None
        for part, _ in span.origin.terms
    }
