"""The rule that computes a chain of two products in one kernel (CUDA)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.ir.expr import AxisKind
from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.gpu.row_blocks import Kernel, RowBlock, is_single, row_kernel
from ansorpy.rules.matching.chain import ancestors, find_chain, reused_axes
from ansorpy.rules.matching.relations import has_reduce_iters
from ansorpy.rules.matching.rowwise import is_evaluated_once
from ansorpy.rules.predicates import fusible_consumer, has_data_reuse
from ansorpy.rules.sketch.add_cache_read import source_order, with_tiles
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.stage import Attach, Stage
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
        plan = _plan(state)
        if isinstance(plan, str):
            return Verdict.skip(plan)
        return Verdict.apply(
            f'blocks of rows of "{plan.kernel.last}" need disjoint parts of all stages'
        )

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        plan = _plan(state)
        assert isinstance(plan, _Plan)
        made = RowBlock(plan.state, plan.kernel)
        inner = made.tile_last(own_rows=True)
        self._sum_up(made, plan.product, plan.kernel.last, inner)
        for name in reversed(plan.kernel.members):
            if name == plan.rows:
                self._sum_up(made, plan.first, name, made.place(name, own_rows=True))
            else:
                made.place(name)
        yield made.state, -1

    def _sum_up(self, made: RowBlock, name: str, host: str, at: str) -> None:
        """Accumulate product *name* in registers at loop *at* of *host*, which stores the results.

        Operands that the block does not compute are read from tiles in shared memory, except for
        single elements.
        """
        state = made.state.compute_at(name, host, at)
        steps, inner = [], []
        for it in state.stage(name).iters:
            if it.kind is AxisKind.REDUCE:
                state, (step, part) = state.split(name, it, (None,), tail="cover")
                steps.append(step)
                inner.append(part)
        space = [it for it in state.stage(name).iters if it.kind is AxisKind.SPACE]
        state = state.reorder(name, [*steps, *inner, *space])
        for it in space:
            state = state.unroll(name, it)
        read = state.current_dag.reads(state.stage(name).op)
        given = [p for p in read if p.size > 1 and p.name not in made.kernel.members]
        for producer in given:
            order = source_order(state.stage(producer.name))
            place = Attach(name, steps[-1].name)
            state = with_tiles(state, producer.name, name, "shared", order, place)
        made.state = state


@dataclass(frozen=True)
class _Plan:
    """A chain with its cheap stages inlined, and the roles of its stages.

    ``product`` is the last product; ``first`` is the one before it, whose results the stage
    ``rows`` keeps for the block.
    """

    state: State
    kernel: Kernel
    product: str
    first: str
    rows: str


def _plan(state: State) -> _Plan | str:
    """The kernel that the unscheduled *state* can become, or the reason why it cannot."""
    chain = find_chain(state)
    if isinstance(chain, str):
        return chain
    state, product = chain.state, chain.state.stage(chain.product)
    last = state.stage(chain.last)
    if chain.after or has_reduce_iters(last) or not is_evaluated_once(state, product):
        return f'the result does not use "{chain.product}" directly and element by element'
    products = [n for n in chain.before if _is_product(state, state.stage(n))]
    if len(products) != 1 or not _is_product(state, product):
        return "there are not two products"
    given = _given(state, (products[0], product.name))
    if isinstance(given, str):
        return given
    state, first, keeper = _kept(given, products[0])
    apart = {first, chain.product, chain.last, *state.constant_stages}
    kept = [s.name for s in state.stages if not (s.is_placeholder or s.inlined or s.name in apart)]
    kernel = row_kernel(
        state, chain.last, kept, (first, chain.product), reused_axes(state, chain.last, product.name)
    )
    if isinstance(kernel, str):
        return kernel
    if is_single(state, kernel):
        return f'the rows of "{chain.last}" are single elements'
    return _Plan(state, kernel, chain.product, first, keeper)


def _given(state: State, products: tuple[str, str]) -> State | str:
    """*state* after inlining the inputs of the products that do not depend on the first product.

    If one of these inputs is a sum, which each block would repeat, returns that reason instead.
    """
    first, kept = products[0], {*products, *state.constant_stages}
    for stage in reversed(state.stages):
        if stage.is_placeholder or stage.inlined or stage.name in kept:
            continue
        read_by = {name for name in products if stage.name in ancestors(state, state.stage(name))}
        if read_by and first not in ancestors(state, stage):
            if has_reduce_iters(stage):
                return f'each block that reads "{stage.name}" would compute its sums again'
            state = state.compute_inline(stage.name)
    return state


def _is_product(state: State, stage: Stage) -> bool:
    return has_reduce_iters(stage) and has_data_reuse(state, stage)


def _kept(state: State, name: str) -> tuple[State, str, str]:
    """*state* with the sum of product *name* separated from the stage that keeps it; both names.

    That stage is the elementwise stage after the sum that several others read, or else a copy.
    """
    keeper = state.stage(name)
    while True:
        readers = [state.stage(r.name) for r in state.current_dag.readers(keeper.op)]
        if len(readers) != 1 or has_reduce_iters(readers[0]):
            break
        keeper = readers[0]
    if keeper.inlined:
        state = state.compute_root(keeper.name)
    reader = fusible_consumer(state, state.stage(name), once_inlined=True)
    if reader is not None and reader.name == keeper.name:
        return state, name, keeper.name
    state, local = state.cache_write(name, "local")
    return state, local, name
