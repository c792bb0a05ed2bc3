"""The rule that copies the inputs of a tiled stage into shared memory (CUDA)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.ir.analysis.access import Access, reads
from ansorpy.ir.expr import Load, Select, walk
from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.gpu.mma_choice import matrix_dims
from ansorpy.rules.matching.relations import consumers, direct_producers
from ansorpy.rules.predicates import is_product
from ansorpy.rules.tiling.levels import last_of_outermost_reduce_tile
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.stage import Attach, KernelStyle, Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["AddCacheRead", "source_order", "with_tiles"]


@dataclass(frozen=True)
class AddCacheRead(SketchRule):
    """Copy the inputs of a tiled consumer into shared memory, once per outermost reduce tile.

    Operands that warps load into fragments are copied at the tiles of the sum that multiplies the
    fragments, with the rows of a matrix next to each other.

    Returns the same stage number: the copy itself is never visited.
    Source: TVM's RuleAddCacheRead.  Differs: a tiled consumer without a reduction, where TVM
    aborts, is left alone, as are all consumers that are not tiled reductions; an input whose
    loads move along different axes (``A[i, k] * A[j, k]``) gets one copy for each of them.  With
    ``by_source``, the copy of a transposed view keeps the source's row order, so that it is copied
    by vectors; if rows run along the reduction, several steps are loaded at once.
    """

    by_source: bool = False

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        stage = state.stage(stage_id)
        readers = consumers(state, stage)
        if not readers:
            return Verdict.skip("nothing reads it")
        if stage.op.size == 1:
            return Verdict.skip("a single element: a register holds it")
        if any(reader.fragment is not None for reader in readers):
            return Verdict.apply_and_skip_rest("warps re-read it as fragments")
        reader = readers[0]
        if not is_product(state, reader):
            return Verdict.skip(f'its consumer "{reader.name}" is not a tiled reduction')
        if _shares_sums(state, reader):
            return Verdict.skip(f'"{reader.name}" reduces across threads')
        if any(stage not in direct_producers(state, r) for r in readers):
            return Verdict.skip("an inlined stage stands between it and its consumer")
        return Verdict.apply_and_skip_rest(f'the tiles of "{reader.name}" re-read it')

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        for found in consumers(state, state.stage(stage_id)):
            reader = state.stage(found.name)
            if not _takes_tiles(state, reader):
                continue
            order = _order(state.stage(stage_id), reader, by_source=self.by_source)
            owner = reader.name if reader.attach is None else reader.attach.stage
            tiled = state.stage(owner if reader.fragment is not None else reader.name)
            host = last_of_outermost_reduce_tile(tiled)
            name = state.stage(stage_id).name
            state = with_tiles(state, name, reader.name, order, Attach(tiled.name, host.name))
        yield state, stage_id


def with_tiles(state: State, name: str, reader: str, order: tuple[int, ...], at: Attach) -> State:
    """*state* with the parts of stage *name* that *reader* reads copied to shared memory at *at*.

    Loads that move along different axes get one copy each: a single copy would span everything
    between them.
    """
    for left in reversed(range(len(_load_groups(state, name, reader)))):
        loads = _load_groups(state, name, reader)[0] if left else ()
        state, copy = state.cache_read(name, "shared", [reader], order, loads)
        state = state.compute_at(copy, at.stage, at.iter)
    return state


def _load_groups(state: State, name: str, reader: str) -> list[tuple[int, ...]]:
    """The numbers of *reader*'s loads of stage *name*, grouped if they differ by constants only."""
    found: dict[object, tuple[int, ...]] = {}
    for number, access in enumerate(reads(state.stage(reader).compute, state.stage(name).op)):
        moves = tuple(_moves(access, d) for d in range(len(access.indices)))
        found[moves] = (*found.get(moves, ()), number)
    return list(found.values())


def _moves(access: Access, d: int) -> frozenset[object]:
    """How index *d* moves: the coefficients of its axes, or only its axes if it is not affine."""
    terms = access.terms[d]
    return frozenset(
        {e for e in walk(access.indices[d]) if e in access.axes} if terms is None
        else terms[0].items()
    )  # fmt: skip


def _order(stage: Stage, reader: Stage, *, by_source: bool) -> tuple[int, ...]:
    """The order of dimensions in the copy; () for the order of *stage*."""
    if reader.tensorized is not None and reader.fragment is not None:
        return _rows_together(reader)
    return source_order(stage) if by_source else ()


def source_order(stage: Stage) -> tuple[int, ...]:
    """The order of dimensions that puts the last one of *stage*'s source last; () if it is last."""
    if stage.is_placeholder:
        return ()
    body = stage.compute.body
    while isinstance(body, Select):
        body = body.then
    axes = list(stage.compute.axes)
    if not isinstance(body, Load) or not body.indices or body.indices[-1] not in axes[:-1]:
        return ()
    last = axes.index(body.indices[-1])
    return (*(d for d in range(len(axes)) if d != last), last)


def _rows_together(operand: Stage) -> tuple[int, ...]:
    """The order of dimensions in which rows of *operand*'s tile are rows of its matrix.

    () if they already are.
    """
    dims, body = matrix_dims(operand), operand.compute.body
    ndim = len(body.indices) if isinstance(body, Load) else 0
    if len(dims) != 2 or dims[1] != ndim - 1 or dims[0] == ndim - 2:
        return ()
    return (*(d for d in range(ndim) if d not in dims), *dims)


def _takes_tiles(state: State, reader: Stage) -> bool:
    if reader.fragment is not None:
        return True
    return is_product(state, reader) and not _shares_sums(state, reader)


def _shares_sums(state: State, reader: Stage) -> bool:
    return state.root_of(reader).kernel_style is KernelStyle.CROSS_THREAD_REDUCTION
