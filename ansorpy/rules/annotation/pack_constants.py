"""Re-laying constants in the order the tiles read them."""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.ir.access import accesses
from ansorpy.rules.base import AnnotationRule
from ansorpy.rules.relations import consumers, is_input
from ansorpy.schedule.space import Space
from ansorpy.schedule.stage import SplitRelation, Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["PackConstants"]


@dataclass(frozen=True)
class PackConstants(AnnotationRule):
    """Pack every constant that one tiled reduction alone reads; it costs nothing when run.

    It must be read with one index tuple that is affine in the loops, so that a layout with one
    dimension a loop exists, and injective, so that no element is stored twice (isl answers where
    an index mixes axes).  Source: TVM's layout rewrite for pre-transformed weights.
    """

    def declare(self, space: Space, target: Target) -> Space:
        state = space.state
        for stage in state.stages:
            readers = consumers(state, stage) if is_input(state, stage) else ()
            if len(readers) != 1 or stage.op not in state.dag.constant_ops:
                continue
            (reader,) = readers
            tiled = any(isinstance(r, SplitRelation) for r in reader.relations)
            if tiled and reader.compute.reduce_axes and _packable(state, stage, reader):
                state = state.pack(reader.name, stage.name)
        return Space(state, space.constraints)


def _packable(state: State, stage: Stage, reader: Stage) -> bool:
    reads = [a for a in accesses(state.dag)[reader.compute] if a.producer is stage.op]
    return len(reads) == 1 and reads[0].injective and None not in reads[0].terms
