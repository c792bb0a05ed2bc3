"""The rule for a kernel that computes parts of reductions, and one that combines them (CUDA)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.gpu.chain_rows import ChainPlan, chain_plan, with_chain_kernel
from ansorpy.rules.gpu.row_blocks import RowBlock, RowKernel, row_kernel
from ansorpy.rules.matching.packed import packed_parts, with_cheap_joiners_inlined
from ansorpy.rules.matching.relations import has_reduce_iters
from ansorpy.rules.matching.rowwise import is_evaluated_once
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["PartsInRows"]


@dataclass(frozen=True)
class PartsInRows(SketchRule):
    """Compute the parts of a reduction in one kernel and their combination in another.

        for i, b, j: S[i, b, j] = ...              for i.0, b:               # blocks of kernel 1
        for i, b, j: E[i, b, j] = f(S)               for i.1, j: S = ...; E = f(S)  # shared memory
        for i, b: M[i, b] += E[i, b] * V[b]   -->    for i.1: M += E * V; P = (M, sum E, ..)
        for i, b: P[i, b] = (M, sum E, ..)         for i.0:                  # blocks of kernel 2
        for i: Y[i] += P[i, b] * share[i, b]         for i.1, b: share = ..; Y += P * share

    Rows of both kernels are those of :class:`~ansorpy.rules.sketch.chain_in_rows.ChainInRows`, the
    first with the scores of one part only.  Threads of the second sum a result each.

    Source: Dao et al. 2023, "Flash-Decoding"; none in Ansor.
    """

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        if stage_id != len(state.stages) - 1 or state.history:
            return Verdict.skip("not the last stage, or some loops are already scheduled")
        parts = packed_parts(state)
        if parts is None:
            return Verdict.skip("no stage has all results of a part of a reduction")
        plan = chain_plan(state, parts)
        if isinstance(plan, str):
            return Verdict.skip(plan)
        found = _combination(state, parts)
        if isinstance(found, str):
            return Verdict.skip(found)
        return Verdict.apply_and_skip_rest(f'all other stages combine the parts in "{parts}"')

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        parts = packed_parts(state)
        assert parts is not None
        found = _combination(state, parts)
        assert isinstance(found, _Combination)
        plan = chain_plan(_with_combination(found), parts)
        assert isinstance(plan, ChainPlan)
        yield with_chain_kernel(plan), -1


@dataclass(frozen=True)
class _Combination:
    """The kernel that combines parts; a thread computes results of ``sums`` where it uses them."""

    state: State
    kernel: RowKernel
    sums: tuple[str, ...]


def _combination(state: State, parts: str) -> _Combination | str:
    """The kernel of the stages after *parts*, or the reason why there is none."""
    state, members = with_cheap_joiners_inlined(state, parts)
    last = state.stage(state.current_dag.outputs[0].name)
    if has_reduce_iters(last):
        return f'"{last.name}" is a sum itself'
    sums = tuple(name for name in members if _is_summed_by(state, last, name))
    kept = [name for name in reversed(members) if name not in sums]
    rows = {axis.name for axis in last.compute.axes}
    kernel = row_kernel(state, last.name, kept, sums, rows)
    return kernel if isinstance(kernel, str) else _Combination(state, kernel, sums)


def _is_summed_by(state: State, last: Stage, name: str) -> bool:
    """Whether *name* is a sum of which *last*, and nothing else, reads each element once."""
    stage = state.stage(name)
    alone = tuple(state.inlined_dag.readers.get(name, ())) == (last.name,)
    return alone and has_reduce_iters(stage) and is_evaluated_once(state, stage)


def _with_combination(found: _Combination) -> State:
    made = RowBlock(found.state, found.kernel)
    inner = made.tile_last(own_rows=True)
    for name in found.sums:
        state = made.state.compute_at(name, found.kernel.last, inner)
        space = state.stage(name).space_iters
        state = state.reorder(name, [*state.stage(name).reduce_iters, *space])
        for it in space:
            state = state.unroll(name, it)
        made.state = state
    for name in reversed(found.kernel.members):
        made.place(name)
    return made.state
