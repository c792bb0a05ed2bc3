"""Pack constants into the order in which tiles read them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ansorpy.ir.analysis.access import reads
from ansorpy.ir.expr import Axis, Load, walk
from ansorpy.rules.base import AnnotationRule
from ansorpy.rules.matching.relations import consumers, is_input
from ansorpy.schedule.space import Space
from ansorpy.schedule.stage import SplitRelation, Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["PackConstants"]


@dataclass(frozen=True)
class PackConstants(AnnotationRule):
    """Pack every constant that only one tiled reduction reads; this costs nothing at run time.

    The constant must be read with one index tuple that contains no loads, so that a layout with one
    dimension per loop exists.  No element may be stored twice: either the read is injective (isl
    decides this if an index mixes axes), or the axes in the index have no more values than the
    constant has elements (a transposed convolution's taps by residue).
    Source: TVM's layout rewrite for pre-transformed weights.
    """

    def declare(self, space: Space, target: Target) -> Space:
        state = space.state
        for stage in state.stages:
            readers = consumers(state, stage) if is_input(state, stage) else ()
            if len(readers) != 1 or stage.op not in state.current_dag.constant_ops:
                continue
            (reader,) = readers
            tiled = any(isinstance(r, SplitRelation) for r in reader.relations)
            if tiled and reader.compute.reduce_axes and _packable(state, stage, reader):
                state = state.pack(reader.name, stage.name)
        return Space(state, space.constraints)


def _packable(state: State, stage: Stage, reader: Stage) -> bool:
    found = reads(state.inlined_dag.ops[reader.name], stage.op)
    if len(found) != 1:
        return False
    if None not in found[0].terms:
        return found[0].is_injective
    inside = {e for index in found[0].indices for e in walk(index)}
    values = prod(axis.extent for axis in inside if isinstance(axis, Axis))
    return values <= stage.op.size and not any(isinstance(e, Load) for e in inside)
