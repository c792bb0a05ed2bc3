"""The rule that copies a run-time operand into the order in which a tile reads it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.ir.affine import index_terms
from ansorpy.rules.annotation.unroll import origins
from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.relations import consumers, is_tiled
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.inlining import effective
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["AddOperandCopy", "moving_dimensions", "vector_dimension"]


@dataclass(frozen=True)
class AddOperandCopy(SketchRule):
    """Copy an input into ``<name>.local``, with the dimension along the vector loop last.

    For operands of a tiled reduction that are indexed by its vector loop.  A copied tile is
    contiguous, so its rows share no cache set, and a transposed operand (``B[j, k]`` where ``j``
    is the vector loop) is gathered once instead of once per tile.  The copy's location, from the
    root to the innermost tile that still re-reads it, is drawn with those of other stages.

    Constants are packed at bind time instead (PackConstants).
    Source: packing in BLIS and GotoBLAS; in TVM, a cache_read written by hand.
    """

    scope: str = "local"

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        stage = state.stage(stage_id)
        if not stage.is_placeholder or stage.op in state.dag.constant_ops:
            return Verdict.skip("only what is given at run time is copied")
        readers = consumers(state, stage)
        if len(readers) != 1 or state.dag.readers(stage.op) != (readers[0].op,):
            return Verdict.skip("not one stage alone reads it")
        (reader,) = readers
        if not is_tiled(reader) or not reader.compute.reduce_axes:
            return Verdict.skip(f'"{reader.name}" is not a tiled reduction')
        if vector_dimension(state, stage, reader) is None:
            return Verdict.skip(f'the vector loop of "{reader.name}" does not move along it')
        return Verdict.apply(f'tiles of "{reader.name}" read it again and again')

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        stage = state.stage(stage_id)
        (reader,) = consumers(state, stage)
        last = vector_dimension(state, stage, reader)
        order = [d for d in range(stage.op.ndim) if d != last]
        assert last is not None, stage.name
        yield state.cache_read(stage_id, self.scope, [reader.name], [*order, last])[0], stage_id - 1


def vector_dimension(state: State, stage: Stage, reader: Stage) -> int | None:
    """The dimension of *stage* that *reader*'s innermost loop moves along; None unless only one."""
    along = moving_dimensions(state, stage, reader)
    return along[0] if along is not None and len(along) == 1 else None


def moving_dimensions(state: State, stage: Stage, reader: Stage) -> tuple[int, ...] | None:
    """The dimensions of *stage* that the innermost loop of *reader* moves along.

    None when it reads several elements at a time or an index is not affine in the axes.
    """
    op = reader.compute
    inner = origins(reader, reader.iters[-1].name)
    moving = {axis for axis in op.axes if axis.name in inner}
    tuples = effective(state).index_tuples(reader.name, stage.name)
    if len(tuples) != 1:
        return None
    found = [index_terms(index, (*op.axes, *op.reduce_axes)) for index in tuples[0]]
    if any(terms is None for terms in found):
        return None
    return tuple(
        d for d, terms in enumerate(found) if terms is not None and moving & terms[0].keys()
    )
