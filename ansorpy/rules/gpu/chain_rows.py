"""The GPU kernel of a chain: two products and all stages between, at blocks of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ansorpy.rules.gpu.row_blocks import RowBlock, RowKernel, is_single, row_kernel
from ansorpy.rules.matching.chain import find_chain, reused_axes
from ansorpy.rules.matching.packed import has_columns_of_its_own
from ansorpy.rules.matching.relations import has_reduce_iters
from ansorpy.rules.matching.rowwise import is_evaluated_once
from ansorpy.rules.predicates import fusible_consumer, is_product
from ansorpy.rules.sketch.add_cache_read import source_order, with_tiles
from ansorpy.schedule.stage import Attach
from ansorpy.schedule.state import State

__all__ = ["ChainPlan", "chain_plan", "with_chain_kernel"]


@dataclass(frozen=True)
class ChainPlan:
    """A chain with its cheap stages inlined, and the roles of its stages.

    ``product`` is the last product.  ``sums`` has the product whose results a stage keeps for the
    block, by this stage: the product before the last one and, unless the last stage uses its
    results element by element, the last one.
    """

    state: State
    kernel: RowKernel
    product: str
    sums: Mapping[str, str]


def chain_plan(state: State, end: str | None = None) -> ChainPlan | str:
    """The kernel that the unscheduled *state* can become, or the reason why it cannot.

    With *end*, the kernel computes this stage; those after it may be scheduled already.
    """
    chain = find_chain(state, end)
    if isinstance(chain, str):
        return chain
    state, product = chain.state, chain.state.stage(chain.product)
    last = state.stage(chain.last)
    packs = has_columns_of_its_own(last.compute)
    direct = packs or is_evaluated_once(state, product)
    if chain.after or has_reduce_iters(last) or not direct:
        return f'the result does not use "{chain.product}" directly and element by element'
    products = [n for n in chain.before if is_product(state, state.stage(n))]
    if len(products) != 1 or not is_product(state, product):
        return "there are not two products"
    given = _given(state, (products[0], product.name))
    if isinstance(given, str):
        return given
    rows = reused_axes(given, chain.last, product.name)
    state, first, keeper = _kept(given, products[0])
    last_sum, sums = chain.product, {keeper: first}
    if packs:
        state, last_sum = state.cache_write(chain.product, "local")
        sums[chain.product] = last_sum
    apart = {first, last_sum, chain.last, *state.constant_stages}
    leading = {op.name for op in state.current_dag.leading_to(state.stage(chain.last).op)}
    kept = [
        s.name for s in state.stages
        if s.name in leading - apart and not (s.is_placeholder or s.inlined)
    ]  # fmt: skip
    kernel = row_kernel(state, chain.last, kept, (first, last_sum), rows)
    if isinstance(kernel, str):
        return kernel
    if is_single(state, kernel):
        return f'the rows of "{chain.last}" are single elements'
    return ChainPlan(state, kernel, last_sum, sums)


def _given(state: State, products: tuple[str, str]) -> State | str:
    """*state* after inlining the inputs of the products that do not depend on the first product.

    If one of these inputs is a sum, which each block would repeat, returns that reason instead.
    """
    dag, kept = state.current_dag, {*products, *state.constant_stages}
    first, last = (state.stage(name).op for name in products)
    read = {*dag.leading_to(first), *dag.leading_to(last)}
    for stage in reversed(state.stages):
        if stage.is_placeholder or stage.inlined or stage.name in kept:
            continue
        if stage.op in read and first not in dag.leading_to(stage.op):
            if has_reduce_iters(stage):
                return f'each block that reads "{stage.name}" would compute its sums again'
            state = state.compute_inline(stage.name)
    return state


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


def with_chain_kernel(plan: ChainPlan) -> State:
    """The state of *plan* with all stages of its kernel in place."""
    made = RowBlock(plan.state, plan.kernel)
    inner = made.tile_last(own_rows=True)
    if plan.product not in plan.sums.values():
        _sum_up(made, plan.product, plan.kernel.last, inner)
    for name in reversed(plan.kernel.members):
        if name in plan.sums:
            _sum_up(made, plan.sums[name], name, made.place(name, own_rows=True))
        else:
            made.place(name)
    return made.state


def _sum_up(made: RowBlock, name: str, host: str, at: str) -> None:
    """Accumulate product *name* in registers at loop *at* of *host*, which stores the results.

    Operands that the block does not compute are read from tiles in shared memory, except for
    single elements.
    """
    state = made.state.compute_at(name, host, at)
    steps, inner = [], []
    for it in state.stage(name).reduce_iters:
        state, (step, part) = state.split(name, it, (None,), tail="cover")
        steps.append(step)
        inner.append(part)
    space = state.stage(name).space_iters
    state = state.reorder(name, [*steps, *inner, *space])
    for it in space:
        state = state.unroll(name, it)
    read = state.current_dag.reads(state.stage(name).op)
    given = [p for p in read if p.size > 1 and p.name not in made.kernel.members]
    for producer in given:
        order = source_order(state.stage(producer.name))
        place = Attach(name, steps[-1].name)
        state = with_tiles(state, producer.name, name, order, place)
    made.state = state
