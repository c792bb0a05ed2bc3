"""The rule that copies a run-time operand into the order in which a tile reads it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.ir.analysis.access import Access, reads
from ansorpy.rules.annotation.unroll import origins
from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.matching.relations import consumers, is_tiled
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["AddOperandCopy", "moving_dimensions", "moving_load", "with_operand_copy"]


@dataclass(frozen=True)
class AddOperandCopy(SketchRule):
    """Copy an input into ``<name>.local``, with the dimension along the vector loop last.

    The rule is for operands of a tiled reduction that are indexed by its vector loop.  Other loads
    of the same input (``A[i, k] * A[j, k]``) read the input itself.  A copied tile is contiguous,
    so its rows do not compete for a cache set, and a transposed operand (``B[j, k]`` where ``j`` is
    the vector loop) is gathered once instead of once per tile.  The copy's location, from the root
    to the innermost tile that still re-reads it, is drawn with those of other stages.

    Constants are packed at bind time instead (PackConstants).
    Source: packing in BLIS and GotoBLAS; in TVM, a cache_read written by hand.
    """

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        stage = state.stage(stage_id)
        if not stage.is_placeholder or stage.op in state.current_dag.constant_ops:
            return Verdict.skip("only inputs given at run time are copied")
        readers = consumers(state, stage)
        if len(readers) != 1 or state.current_dag.readers(stage.op) != (readers[0].op,):
            return Verdict.skip("it is not read by exactly one stage")
        (reader,) = readers
        if not is_tiled(reader) or not reader.compute.reduce_axes:
            return Verdict.skip(f'"{reader.name}" is not a tiled reduction')
        if moving_load(stage, reader) is None:
            return Verdict.skip(f'the vector loop of "{reader.name}" does not move along it')
        return Verdict.apply(f'tiles of "{reader.name}" re-read it')

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        stage = state.stage(stage_id)
        (reader,) = consumers(state, stage)
        yield with_operand_copy(state, stage, reader), stage_id - 1


@dataclass(frozen=True)
class MovingLoad:
    """A load of an operand, by its number in the reader, and the dimension it moves along."""

    number: int
    dimension: int


def moving_load(stage: Stage, reader: Stage) -> MovingLoad | None:
    """The load of *stage* that moves with *reader*'s innermost loop.

    None unless it is the only one and moves along one dimension.
    """
    found = []
    for number, access in enumerate(reads(reader.compute, stage.op)):
        along = moving_dimensions(reader, access)
        if along is None:
            return None
        found += [MovingLoad(number, dimension) for dimension in along]
    return found[0] if len(found) == 1 else None


def with_operand_copy(state: State, stage: Stage, reader: Stage) -> State:
    """*state* with a copy of *stage* for its :func:`moving_load`, with that dimension last."""
    load = moving_load(stage, reader)
    assert load is not None, stage.name
    order = [*(d for d in range(stage.op.ndim) if d != load.dimension), load.dimension]
    alone = len(reads(reader.compute, stage.op)) == 1
    loads = () if alone else (load.number,)
    return state.cache_read(stage.name, "local", [reader.name], order, loads)[0]


def moving_dimensions(reader: Stage, access: Access) -> tuple[int, ...] | None:
    """The dimensions in which a load moves with the innermost loop of *reader*.

    None if it does not move by the same number of elements with each step.
    """
    inner = origins(reader, reader.iters[-1].name)
    moving = [axis for axis in access.reader.axes if axis.name in inner]
    steps = [[access.step(d, axis) for axis in moving] for d in range(len(access.indices))]
    if any(None in of_axes for of_axes in steps):
        return None
    return tuple(d for d, of_axes in enumerate(steps) if any(of_axes))
